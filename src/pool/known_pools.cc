#include "pool/known_pools.h"

#include <cstddef>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"

namespace volumed {
namespace {

constexpr size_t kShownPoolName = 128;  // bytes of the name that a caller gave

}  // namespace

Error NoSuchPool(const std::vector<std::unique_ptr<Pool>>& pools, const std::string& name) {
  std::string text = "this node has no pool";
  if (!name.empty()) text += " " + Quoted(name, kShownPoolName);
  std::vector<std::string> names;
  names.reserve(pools.size());
  for (const std::unique_ptr<Pool>& pool : pools) names.push_back(pool->name());
  if (!names.empty()) text += "; it has " + Join(names, ", ");
  return Error::NotApplied(Code::kNotFound, std::move(text));
}

}  // namespace volumed
