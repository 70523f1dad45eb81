// The ABI's structs as plugins have compiled them: a change here is a change of the ABI, and needs
// a new minor (append) or a new major (anything else). Compiling this file is the test. On 64-bit
// machines.
#include <piper/piper.h>

#include <type_traits>

namespace {

#define SIZE(type, size)                 \
  static_assert(sizeof(type) == (size)); \
  static_assert(std::is_standard_layout_v<type> && std::is_trivial_v<type>)
#define AT(type, field, offset) static_assert(offsetof(type, field) == (offset))

static_assert(PIPER_ABI_MAJOR == 0 && PIPER_ABI_MINOR == 3);
static_assert(sizeof(void*) == 8);

SIZE(piper_str, 16);
AT(piper_str, ptr, 0);
AT(piper_str, len, 8);

SIZE(piper_span, 24);
AT(piper_span, ptr, 0);
AT(piper_span, count, 8);
AT(piper_span, stride, 16);

SIZE(piper_where, 8);
AT(piper_where, bits, 0);

SIZE(piper_note, 32);
AT(piper_note, struct_size, 0);
AT(piper_note, reserved, 4);
AT(piper_note, message, 8);
AT(piper_note, where, 24);

SIZE(piper_diag, 72);
AT(piper_diag, struct_size, 0);
AT(piper_diag, severity, 4);
AT(piper_diag, code, 8);
AT(piper_diag, message, 24);
AT(piper_diag, where, 40);
AT(piper_diag, notes, 48);

SIZE(piper_base, 16);
AT(piper_base, report, 0);
AT(piper_base, get_api, 8);

SIZE(piper_region, 8);
AT(piper_region, bits, 0);

SIZE(piper_affine, 16);
AT(piper_affine, per_row, 0);
AT(piper_affine, fixed, 8);

SIZE(piper_tag_value, 8);
AT(piper_tag_value, name, 0);
AT(piper_tag_value, index, 4);

SIZE(piper_region_info, 176);
AT(piper_region_info, struct_size, 0);
AT(piper_region_info, reserved, 4);
AT(piper_region_info, region, 8);
AT(piper_region_info, tags, 16);
AT(piper_region_info, parameters, 40);
AT(piper_region_info, inputs, 64);
AT(piper_region_info, outputs, 88);
AT(piper_region_info, flops, 112);
AT(piper_region_info, saved_bytes, 128);
AT(piper_region_info, transient_bytes, 144);
AT(piper_region_info, where, 160);
AT(piper_region_info, cost, 168);

SIZE(piper_parameter_info, 72);
AT(piper_parameter_info, struct_size, 0);
AT(piper_parameter_info, dtype, 4);
AT(piper_parameter_info, name, 8);
AT(piper_parameter_info, shape, 24);
AT(piper_parameter_info, bytes, 48);
AT(piper_parameter_info, frozen, 56);
AT(piper_parameter_info, reserved, 60);
AT(piper_parameter_info, where, 64);

SIZE(piper_value_info, 72);
AT(piper_value_info, struct_size, 0);
AT(piper_value_info, dtype, 4);
AT(piper_value_info, name, 8);
AT(piper_value_info, shape, 24);
AT(piper_value_info, bytes, 48);
AT(piper_value_info, producer, 64);
AT(piper_value_info, reserved, 68);

SIZE(piper_graph, 128);
AT(piper_graph, struct_size, 0);
AT(piper_graph, loss, 4);
AT(piper_graph, labels, 8);
AT(piper_graph, reserved, 12);
AT(piper_graph, name, 16);
AT(piper_graph, tag_names, 32);
AT(piper_graph, parameters, 56);
AT(piper_graph, values, 80);
AT(piper_graph, regions, 104);

SIZE(piper_axis, 32);
AT(piper_axis, struct_size, 0);
AT(piper_axis, size, 4);
AT(piper_axis, name, 8);
AT(piper_axis, where, 24);

SIZE(piper_job, 64);
AT(piper_job, struct_size, 0);
AT(piper_job, world, 4);
AT(piper_job, microbatches, 8);
AT(piper_job, reserved, 12);
AT(piper_job, rows, 16);
AT(piper_job, global_rows, 24);
AT(piper_job, axes, 32);
AT(piper_job, microbatches_where, 56);

SIZE(piper_unit, 16);
AT(piper_unit, first, 0);
AT(piper_unit, index, 8);
AT(piper_unit, reserved, 12);

SIZE(piper_graph_api, 32);
AT(piper_graph_api, struct_size, 0);
AT(piper_graph_api, reserved, 4);
AT(piper_graph_api, graph, 8);
AT(piper_graph_api, job, 16);
AT(piper_graph_api, units, 24);

SIZE(piper_ranks, 8);
AT(piper_ranks, bits, 0);

SIZE(piper_coordinate, 24);
AT(piper_coordinate, axis, 0);
AT(piper_coordinate, index, 16);

SIZE(piper_ranks_api, 48);
AT(piper_ranks_api, struct_size, 0);
AT(piper_ranks_api, reserved, 4);
AT(piper_ranks_api, at, 8);
AT(piper_ranks_api, along, 16);
AT(piper_ranks_api, of, 24);
AT(piper_ranks_api, group, 32);
AT(piper_ranks_api, list, 40);

SIZE(piper_condition, 48);
AT(piper_condition, struct_size, 0);
AT(piper_condition, kind, 4);
AT(piper_condition, tag, 8);
AT(piper_condition, values, 24);

SIZE(piper_filter, 56);
AT(piper_filter, struct_size, 0);
AT(piper_filter, passes, 4);
AT(piper_filter, conditions, 8);
AT(piper_filter, regions, 32);

SIZE(piper_partition, 56);
AT(piper_partition, struct_size, 0);
AT(piper_partition, by, 4);
AT(piper_partition, parts, 8);
AT(piper_partition, reserved, 12);
AT(piper_partition, over, 16);
AT(piper_partition, boundaries, 32);

SIZE(piper_tag, 40);
AT(piper_tag, struct_size, 0);
AT(piper_tag, index, 4);
AT(piper_tag, name, 8);
AT(piper_tag, filter, 24);
AT(piper_tag, partition, 32);

SIZE(piper_split, 32);
AT(piper_split, struct_size, 0);
AT(piper_split, n, 4);
AT(piper_split, dim, 8);
AT(piper_split, filter, 24);

SIZE(piper_split_backward, 16);
AT(piper_split_backward, struct_size, 0);
AT(piper_split_backward, reserved, 4);
AT(piper_split_backward, filter, 8);

SIZE(piper_place, 40);
AT(piper_place, struct_size, 0);
AT(piper_place, reserved, 4);
AT(piper_place, filter, 8);
AT(piper_place, ranks, 16);
AT(piper_place, stream, 24);

SIZE(piper_replicate, 80);
AT(piper_replicate, struct_size, 0);
AT(piper_replicate, present, 4);
AT(piper_replicate, filter, 8);
AT(piper_replicate, ranks, 16);
AT(piper_replicate, gather_stream, 24);
AT(piper_replicate, reduce_stream, 40);
AT(piper_replicate, bucket_bytes, 56);
AT(piper_replicate, shard, 64);
AT(piper_replicate, prefetch, 68);
AT(piper_replicate, keep_gathered, 72);
AT(piper_replicate, reduce, 76);

SIZE(piper_shard, 40);
AT(piper_shard, struct_size, 0);
AT(piper_shard, kind, 4);
AT(piper_shard, filter, 8);
AT(piper_shard, ranks, 16);
AT(piper_shard, stream, 24);

SIZE(piper_recompute, 16);
AT(piper_recompute, struct_size, 0);
AT(piper_recompute, reserved, 4);
AT(piper_recompute, filter, 8);

SIZE(piper_claim, 24);
AT(piper_claim, struct_size, 0);
AT(piper_claim, kind, 4);
AT(piper_claim, name, 8);

SIZE(piper_directive_api, 88);
AT(piper_directive_api, struct_size, 0);
AT(piper_directive_api, reserved, 4);
AT(piper_directive_api, claim, 8);
AT(piper_directive_api, tag, 16);
AT(piper_directive_api, split, 24);
AT(piper_directive_api, split_backward, 32);
AT(piper_directive_api, place, 40);
AT(piper_directive_api, replicate, 48);
AT(piper_directive_api, shard, 56);
AT(piper_directive_api, order, 64);
AT(piper_directive_api, order_chain, 72);
AT(piper_directive_api, recompute, 80);

SIZE(piper_order_group, 32);
AT(piper_order_group, struct_size, 0);
AT(piper_order_group, reserved, 4);
AT(piper_order_group, filters, 8);

SIZE(piper_order, 32);
AT(piper_order, struct_size, 0);
AT(piper_order, reserved, 4);
AT(piper_order, groups, 8);

SIZE(piper_action, 16);
AT(piper_action, stage, 0);
AT(piper_action, microbatch, 4);
AT(piper_action, pass, 8);
AT(piper_action, overlap, 12);

SIZE(piper_option_api, 72);
AT(piper_option_api, struct_size, 0);
AT(piper_option_api, reserved, 4);
AT(piper_option_api, state, 8);
AT(piper_option_api, get_bool, 16);
AT(piper_option_api, get_i64, 24);
AT(piper_option_api, get_f64, 32);
AT(piper_option_api, get_str, 40);
AT(piper_option_api, get_i64_list, 48);
AT(piper_option_api, get_f64_list, 56);
AT(piper_option_api, get_str_list, 64);

SIZE(piper_host, 64);
AT(piper_host, struct_size, 0);
AT(piper_host, abi_minor, 4);
AT(piper_host, version, 8);
AT(piper_host, graph, 24);
AT(piper_host, ranks, 32);
AT(piper_host, options, 40);
AT(piper_host, directives, 48);
AT(piper_host, get_extension, 56);

SIZE(piper_plugin, 80);
AT(piper_plugin, struct_size, 0);
AT(piper_plugin, abi_minor, 4);
AT(piper_plugin, min_host_minor, 8);
AT(piper_plugin, built_with_minor, 12);
AT(piper_plugin, id, 16);
AT(piper_plugin, version, 32);
AT(piper_plugin, plan, 48);
AT(piper_plugin, shutdown, 56);
AT(piper_plugin, get_extension, 64);
AT(piper_plugin, self, 72);

}  // namespace
