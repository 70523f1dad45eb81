#include "core/directives/toml/read.h"

#include <utility>

#include "core/directives/mesh_ranks.h"
#include "core/directives/toml/table.h"

namespace piper {

Expected<Proposal> read_directives(const Config& config) {
  const MeshRanks mesh(config.mesh);
  Proposal proposal;
  proposal.from = {"job", config.where("directive")};
  proposal.unordered = true;
  Claims claims{config.mesh, mesh};
  Diagnostics mistakes;
  for (const RawValue& table : config.directives) {
    Directive directive;
    directive.from = {"job", table.where};
    if (DirectiveTable(table, mesh, mistakes).read(directive)) {
      claim(directive, claims);
      proposal.directives.push_back(std::move(directive));
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  proposal.claims = std::move(claims.list);
  return proposal;
}

}  // namespace piper
