// piper_base and piper_host: reporting, and handing out the tables.
#include "core/plugin/context.h"

#include "core/plugin/abi.h"

namespace piper {
namespace {

constexpr std::size_t kDiagSize = PIPER_FIRST_SIZE(piper_diag, notes);
constexpr std::size_t kNoteSize = PIPER_FIRST_SIZE(piper_note, where);

piper_code record(piper_ctx& ctx, const piper_diag* given) {
  if (!ctx.read("report: diag", given, kDiagSize)) {
    return PIPER_INVALID;
  }
  const piper_diag diag = complete(given);
  Diagnostic diagnostic;
  std::string message;
  std::vector<piper_note> notes;
  if (!ctx.read("report: code", diag.code, diagnostic.code) ||
      !ctx.read("report: message", diag.message, message) ||
      !ctx.read_all("report: notes", diag.notes, kNoteSize, notes)) {
    return PIPER_INVALID;
  }
  if (diag.severity < PIPER_SEVERITY_ERROR || diag.severity > PIPER_SEVERITY_PLUGIN_MISBEHAVING) {
    return ctx.refuse(PIPER_INVALID, "abi.value",
                      "report: unknown severity " + std::to_string(diag.severity));
  }
  diagnostic.severity =
      diag.severity == PIPER_SEVERITY_WARNING ? Severity::warning : Severity::error;
  diagnostic.message = ctx.plugin + ": " + message;
  diagnostic.where = ctx.locate(diag.where);
  for (const piper_note& note : notes) {
    std::string text;
    if (!ctx.read("report: note", note.message, text)) {
      return PIPER_INVALID;
    }
    diagnostic.note(text, ctx.locate(note.where));
  }
  if (diagnostic.code.empty()) {
    diagnostic.code = ctx.plugin + ".error";
  }
  if (diag.severity == PIPER_SEVERITY_HOST_MISBEHAVING) {
    diagnostic.note("the plugin says that this is a fault of Piper");
  } else if (diag.severity == PIPER_SEVERITY_PLUGIN_MISBEHAVING) {
    diagnostic.note("this is a fault of the plugin, not of the job");
  }
  (diagnostic.severity == Severity::warning ? ctx.warnings : ctx.errors)
      .push_back(std::move(diagnostic));
  return PIPER_OK;
}

piper_code PIPER_CALL report(piper_ctx* ctx, const piper_diag* diag) {
  return guarded(ctx, piper_ctx::State::scanning, "report",
                 [&](piper_ctx& c) { return record(c, diag); });
}

const void* PIPER_CALL get_api(piper_ctx* ctx, std::uint32_t major, std::uint32_t min_minor) {
  const piper_code code =
      guarded(ctx, piper_ctx::State::scanning, "get_api", [&](piper_ctx& c) -> piper_code {
        const AbiVersion wanted{major, min_minor};
        if (auto minor = negotiate(host_abi(), wanted, min_minor); !minor) {
          return c.refuse(PIPER_ERROR, std::move(minor.error()));
        }
        return PIPER_OK;
      });
  return code == PIPER_OK ? &host_api() : nullptr;
}

const void* PIPER_CALL get_extension(piper_ctx* /*ctx*/, piper_str /*id*/) {
  return nullptr;
}

}  // namespace

const piper_base& base_api() {
  static constexpr piper_base table{report, get_api};
  return table;
}

const piper_host& host_api() {
  static const piper_host table{sizeof(piper_host), PIPER_ABI_MINOR, to_abi(PIPER_VERSION),
                                &graph_api(),       &ranks_api(),    &option_api(),
                                &directive_api(),   get_extension};
  return table;
}

}  // namespace piper
