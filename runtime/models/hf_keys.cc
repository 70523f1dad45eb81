#include "runtime/models/hf_keys.h"

#include <algorithm>
#include <iterator>

namespace piper {
namespace {

constexpr std::string_view kReturned = "what transformers returns";
constexpr std::string_view kGeneration = "for generating text";
constexpr std::string_view kClasses = "for classifying";
constexpr std::string_view kOrigin = "where the folder comes from";
constexpr std::string_view kKernel = "how attention is computed, not what";
constexpr std::string_view kTensorFlow = "for TensorFlow";

constexpr HfKey kKeys[] = {
    {"head_dim", HfUse::used, "", "`model.head_dim`; 128 where it is missing"},
    {"hidden_size", HfUse::used, "", "`model.dim`"},
    {"initializer_range", HfUse::used, "", "deviation of random weights; 0.02 where it is missing"},
    {"intermediate_size", HfUse::used, "", "`model.ffn`"},
    {"layer_types", HfUse::used, "", "`\"full_attention\"` for every layer; any other is refused"},
    {"max_position_embeddings", HfUse::used, "", "a longer `training.seq_len` is remarked"},
    {"num_attention_heads", HfUse::used, "", "`model.heads`"},
    {"num_hidden_layers", HfUse::used, "", "`model.layers`"},
    {"num_key_value_heads", HfUse::used, "", "`model.kv_heads`; `model.heads` where it is null"},
    {"pad_token_id", HfUse::used, "",
     "remarked: transformers gives this row of the embedding no gradient"},
    {"quantization_config", HfUse::used, "",
     "refused where weights are loaded, remarked where they are not; never saved"},
    {"rms_norm_eps", HfUse::used, "", "`model.norm_eps`; 1e-6 where it is missing"},
    {"rope_parameters", HfUse::used, "", "`rope_type` \"default\" and `rope_theta`"},
    {"rope_scaling", HfUse::used, "", "null, or as `rope_parameters`"},
    {"rope_theta", HfUse::used, "", "`model.rope_theta`; 10000 where it is missing"},
    {"tie_word_embeddings", HfUse::used, "", "`model.tied`; false where it is missing"},
    {"vocab_size", HfUse::used, "", "`model.vocab`"},

    {"add_cross_attention", HfUse::only, "false", "another model"},
    {"architectures", HfUse::only, "[\"Qwen3ForCausalLM\"]", "another model"},
    {"attention_bias", HfUse::only, "false", "biases of the projections"},
    {"attention_dropout", HfUse::only, "0.0", "`model.dropout` is at other places"},
    {"chunk_size_feed_forward", HfUse::only, "0", "rounds differently"},
    {"cross_attention_hidden_size", HfUse::only, "null", "another model"},
    {"hidden_act", HfUse::only, "\"silu\"", "another activation"},
    {"is_causal", HfUse::only, "true", "attention to later positions"},
    {"is_encoder_decoder", HfUse::only, "false", "another model"},
    {"mlp_bias", HfUse::only, "false", "biases of the feed-forward"},
    {"model_type", HfUse::only, "\"qwen3\"", "another model"},
    {"partial_rotary_factor", HfUse::only, "1.0", "positions on a part of each head"},
    {"pretraining_tp", HfUse::only, "1", "rounds differently"},
    {"pruned_heads", HfUse::only, "{}", "heads that are left out"},
    {"tie_encoder_decoder", HfUse::only, "false", "another model"},
    {"use_sliding_window", HfUse::only, "false", "attention to a window"},

    {"_attn_implementation", HfUse::ignored, "", kKernel},
    {"_attn_implementation_autoset", HfUse::ignored, "", kKernel},
    {"_commit_hash", HfUse::ignored, "", kOrigin},
    {"_name_or_path", HfUse::ignored, "", kOrigin},
    {"attn_implementation", HfUse::ignored, "", kKernel},
    {"bad_words_ids", HfUse::ignored, "", kGeneration},
    {"begin_suppress_tokens", HfUse::ignored, "", kGeneration},
    {"bos_token_id", HfUse::ignored, "", kGeneration},
    {"decoder_start_token_id", HfUse::ignored, "", kGeneration},
    {"diversity_penalty", HfUse::ignored, "", kGeneration},
    {"do_sample", HfUse::ignored, "", kGeneration},
    {"dtype", HfUse::ignored, "", "`training.dtype` says it; saved as that"},
    {"early_stopping", HfUse::ignored, "", kGeneration},
    {"encoder_no_repeat_ngram_size", HfUse::ignored, "", kGeneration},
    {"eos_token_id", HfUse::ignored, "", kGeneration},
    {"exponential_decay_length_penalty", HfUse::ignored, "", kGeneration},
    {"finetuning_task", HfUse::ignored, "", kClasses},
    {"forced_bos_token_id", HfUse::ignored, "", kGeneration},
    {"forced_eos_token_id", HfUse::ignored, "", kGeneration},
    {"gradient_checkpointing", HfUse::ignored, "", "`activation_checkpoint` says it"},
    {"id2label", HfUse::ignored, "", kClasses},
    {"is_decoder", HfUse::ignored, "", "Qwen3 does not read it"},
    {"label2id", HfUse::ignored, "", kClasses},
    {"length_penalty", HfUse::ignored, "", kGeneration},
    {"max_length", HfUse::ignored, "", kGeneration},
    {"max_window_layers", HfUse::ignored, "", "for `use_sliding_window`"},
    {"min_length", HfUse::ignored, "", kGeneration},
    {"no_repeat_ngram_size", HfUse::ignored, "", kGeneration},
    {"num_beam_groups", HfUse::ignored, "", kGeneration},
    {"num_beams", HfUse::ignored, "", kGeneration},
    {"num_labels", HfUse::ignored, "", kClasses},
    {"num_return_sequences", HfUse::ignored, "", kGeneration},
    {"output_attentions", HfUse::ignored, "", kReturned},
    {"output_hidden_states", HfUse::ignored, "", kReturned},
    {"output_scores", HfUse::ignored, "", kReturned},
    {"prefix", HfUse::ignored, "", kGeneration},
    {"problem_type", HfUse::ignored, "", kClasses},
    {"remove_invalid_values", HfUse::ignored, "", kGeneration},
    {"repetition_penalty", HfUse::ignored, "", kGeneration},
    {"return_dict", HfUse::ignored, "", kReturned},
    {"return_dict_in_generate", HfUse::ignored, "", kReturned},
    {"sep_token_id", HfUse::ignored, "", kGeneration},
    {"sliding_window", HfUse::ignored, "", "for `use_sliding_window`"},
    {"suppress_tokens", HfUse::ignored, "", kGeneration},
    {"task_specific_params", HfUse::ignored, "", kGeneration},
    {"temperature", HfUse::ignored, "", kGeneration},
    {"tf_legacy_loss", HfUse::ignored, "", kTensorFlow},
    {"tokenizer_class", HfUse::ignored, "", "data is tokenised already"},
    {"top_k", HfUse::ignored, "", kGeneration},
    {"top_p", HfUse::ignored, "", kGeneration},
    {"torch_dtype", HfUse::ignored, "", "as `dtype`"},
    {"torchscript", HfUse::ignored, "", kReturned},
    {"transformers_version", HfUse::ignored, "", kOrigin},
    {"typical_p", HfUse::ignored, "", kGeneration},
    {"unsloth_fixed", HfUse::ignored, "", kOrigin},
    {"unsloth_version", HfUse::ignored, "", kOrigin},
    {"use_bfloat16", HfUse::ignored, "", kTensorFlow},
    {"use_cache", HfUse::ignored, "", kGeneration},
};

constexpr HfKey kRopeKeys[] = {
    {"rope_theta", HfUse::used, "", "as the key of that name"},
    {"partial_rotary_factor", HfUse::only, "1.0", "positions on a part of each head"},
    {"rope_type", HfUse::only, "\"default\"", "other frequencies"},
    {"type", HfUse::only, "\"default\"", "as `rope_type`"},
};

constexpr bool ordered(std::span<const HfKey> keys) {
  return std::is_sorted(keys.begin(), keys.end(), [](const HfKey& a, const HfKey& b) {
    return a.use != b.use ? a.use < b.use : a.name < b.name;
  });
}
static_assert(ordered(kKeys));

}  // namespace

std::span<const HfKey> hf_keys() {
  return kKeys;
}

std::span<const HfKey> hf_rope_keys() {
  return kRopeKeys;
}

const HfKey* find_hf_key(std::span<const HfKey> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const HfKey& key) { return key.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace piper
