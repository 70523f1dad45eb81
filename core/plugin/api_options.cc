// piper_option_api: typed values of the strategy's own options.
#include "core/plugin/context.h"

namespace piper {
namespace {

struct Found {
  const Option* option = nullptr;
  const JobView::OptionView* view = nullptr;
};

// The option called `name`; none, with an error recorded, where the manifest has none or of another
// type.
Found find(piper_ctx& ctx, piper_str given, const char* wanted, bool list,
           std::initializer_list<OptionType> types) {
  std::string name;
  if (!ctx.read("option name", given, name)) {
    return {};
  }
  const std::vector<Option>& options = ctx.view->strategy.options;
  std::vector<std::string> known;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const OptionSpec& spec = options[i].spec;
    known.push_back(spec.name);
    if (spec.name != name) {
      continue;
    }
    if (types.size() > 0 &&
        (spec.list != list || std::find(types.begin(), types.end(), spec.type) == types.end())) {
      ctx.refuse(PIPER_ERROR, "plugin.option_type",
                 "asks for option '" + name + "' as " + wanted + ", and its manifest says " +
                     (spec.list ? "list of " : "") + std::string(to_string(spec.type)));
      return {};
    }
    return {&options[i], &ctx.view->options[i]};
  }
  ctx.refuse(PIPER_ERROR, "plugin.option_unknown",
             "asks for option '" + name + "', which its manifest lacks" + suggest(name, known));
  return {};
}

template <typename Out, typename Copy>
piper_code get(piper_ctx* ctx, piper_str name, Out* out, const char* wanted, bool list,
               std::initializer_list<OptionType> types, Copy&& copy) {
  return planning(ctx, "an option's getter", [&](piper_ctx& c) -> piper_code {
    if (out == nullptr) {
      return c.null("an option's out");
    }
    const Found found = find(c, name, wanted, list, types);
    if (found.option == nullptr) {
      return PIPER_ERROR;
    }
    if (found.option->state == Option::State::absent) {
      return PIPER_ABSENT;
    }
    copy(found);
    return PIPER_OK;
  });
}

// One value: the first item of its list.
template <typename Out, typename Copy>
piper_code get_one(piper_ctx* ctx, piper_str name, Out* out, piper_where* where, const char* wanted,
                   std::initializer_list<OptionType> types, Copy&& copy) {
  return get(ctx, name, out, wanted, false, types, [&](const Found& found) {
    copy(found);
    if (where != nullptr) {
      *where = found.view->where;
    }
  });
}

template <typename Copy>
piper_code get_list(piper_ctx* ctx, piper_str name, piper_span* out, piper_span* wheres,
                    const char* wanted, std::initializer_list<OptionType> types, Copy&& copy) {
  return get(ctx, name, out, wanted, true, types, [&](const Found& found) {
    copy(found);
    if (wheres != nullptr) {
      *wheres = to_span(found.view->wheres);
    }
  });
}

piper_code PIPER_CALL state(piper_ctx* ctx, piper_str name, piper_option_state* out) {
  return planning(ctx, "state", [&](piper_ctx& c) -> piper_code {
    if (out == nullptr) {
      return c.null("state: out");
    }
    const Found found = find(c, name, "", false, {});
    if (found.option == nullptr) {
      return PIPER_ERROR;
    }
    *out = static_cast<piper_option_state>(found.option->state);
    return PIPER_OK;
  });
}

piper_code PIPER_CALL get_bool(piper_ctx* ctx, piper_str name, std::int32_t* out,
                               piper_where* where) {
  return get_one(ctx, name, out, where, "bool", {OptionType::boolean}, [&](const Found& found) {
    *out = static_cast<std::int32_t>(found.option->integers[0]);
  });
}
piper_code PIPER_CALL get_i64(piper_ctx* ctx, piper_str name, std::int64_t* out,
                              piper_where* where) {
  return get_one(ctx, name, out, where, "i64", {OptionType::i64},
                 [&](const Found& found) { *out = found.option->integers[0]; });
}
piper_code PIPER_CALL get_f64(piper_ctx* ctx, piper_str name, double* out, piper_where* where) {
  return get_one(ctx, name, out, where, "f64", {OptionType::f64},
                 [&](const Found& found) { *out = found.option->numbers[0]; });
}
piper_code PIPER_CALL get_str(piper_ctx* ctx, piper_str name, piper_str* out, piper_where* where) {
  return get_one(ctx, name, out, where, "str", {OptionType::string, OptionType::enumeration},
                 [&](const Found& found) { *out = found.view->texts[0]; });
}
piper_code PIPER_CALL get_i64_list(piper_ctx* ctx, piper_str name, piper_span* out,
                                   piper_span* wheres) {
  return get_list(ctx, name, out, wheres, "list of i64", {OptionType::i64, OptionType::boolean},
                  [&](const Found& found) { *out = to_span(found.option->integers); });
}
piper_code PIPER_CALL get_f64_list(piper_ctx* ctx, piper_str name, piper_span* out,
                                   piper_span* wheres) {
  return get_list(ctx, name, out, wheres, "list of f64", {OptionType::f64},
                  [&](const Found& found) { *out = to_span(found.option->numbers); });
}
piper_code PIPER_CALL get_str_list(piper_ctx* ctx, piper_str name, piper_span* out,
                                   piper_span* wheres) {
  return get_list(ctx, name, out, wheres, "list of str",
                  {OptionType::string, OptionType::enumeration},
                  [&](const Found& found) { *out = to_span(found.view->texts); });
}

}  // namespace

static_assert(static_cast<piper_option_state>(Option::State::absent) == PIPER_OPTION_ABSENT);
static_assert(static_cast<piper_option_state>(Option::State::fallback) == PIPER_OPTION_DEFAULT);
static_assert(static_cast<piper_option_state>(Option::State::written) == PIPER_OPTION_WRITTEN);

const piper_option_api& option_api() {
  static constexpr piper_option_api table{sizeof(piper_option_api),
                                          0,
                                          state,
                                          get_bool,
                                          get_i64,
                                          get_f64,
                                          get_str,
                                          get_i64_list,
                                          get_f64_list,
                                          get_str_list};
  return table;
}

}  // namespace piper
