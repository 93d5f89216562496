#include "os/composites.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "os/ensure_volume.h"
#include "os/remove_skeleton.h"
#include "os/safe_open.h"
#include "os/sub_paths.h"

namespace volumed {
namespace {

// Why the request may be in no batch; null: it may.
const char* WhyNotInBatch(const AnyRequest& request) {
  if (std::holds_alternative<Batch>(request)) return "a batch in a batch";
  if (MustFinish(request)) return "an effect that must not be ended half-way";
  if (std::holds_alternative<IdentifyDevice>(request)) return "an answer with a descriptor";
  return nullptr;
}

Result<BatchAnswer> DoBatch(Kernel& kernel, const Batch& batch, const CallOptions& options) {
  for (const BatchItem& item : batch.items) {
    if (const char* why = WhyNotInBatch(item.request)) {
      return Error::NotApplied(
          Code::kInvalidArgument,
          "a batch cannot hold " + std::string(RequestName(item.request)) + ": " + why);
    }
  }
  BatchAnswer answer;
  answer.items.reserve(batch.items.size());
  for (const BatchItem& item : batch.items) {
    const bool may_be_tried = std::all_of(item.needs.begin(), item.needs.end(), [&](size_t needed) {
      return needed < answer.items.size() && answer.items[needed].result.ok();
    });
    if (may_be_tried) {
      answer.items.push_back({kernel.Perform(item.request, options)});
    } else {
      answer.items.push_back({Error::NotApplied(
          Code::kAborted, std::string(RequestName(item.request)) + " " + RequestPath(item.request) +
                              ": what comes before it failed")});
    }
  }
  return answer;
}

struct Functions {
  Kernel& kernel;
  const CallOptions& options;

  Result<EnsuredVolume> operator()(const EnsureVolume& r) const {
    return DoEnsureVolume(kernel, r, options);
  }
  Result<Changed> operator()(const RemoveVolume& r) const {
    return DoRemoveVolume(kernel, r, options);
  }
  Result<Done> operator()(const PrepareSubPath& r) const {
    return DoPrepareSubPath(kernel, r, options);
  }
  Result<Changed> operator()(const RemoveSubPaths& r) const {
    return DoRemoveSubPaths(kernel, r, options);
  }
  Result<Changed> operator()(const RemoveSkeleton& r) const {
    return DoRemoveSkeleton(kernel, r, options);
  }
  Result<BatchAnswer> operator()(const Batch& r) const { return DoBatch(kernel, r, options); }
};

}  // namespace

bool IsComposite(const AnyRequest& request) {
  return std::visit([](const auto& r) { return kIsComposite<std::decay_t<decltype(r)>>; }, request);
}

Result<AnyAnswer> DoComposite(Kernel& kernel, const AnyRequest& request,
                              const CallOptions& options) {
  const KeptRoots kept;
  const Functions functions{kernel, options};
  return std::visit(
      [&functions](const auto& r) -> Result<AnyAnswer> {
        if constexpr (kIsComposite<std::decay_t<decltype(r)>>) {
          auto answer = functions(r);
          if (!answer.ok()) return answer.error();
          return AnyAnswer(std::move(answer).value());
        } else {
          return Error::NotApplied(Code::kInternal, std::string(r.kName) + " is no composite");
        }
      },
      request);
}

Result<AnyAnswer> Kernel::Perform(const AnyRequest& request, const CallOptions& options) {
  if (!IsComposite(request) || TakesComposites()) return Do(request, options);
  return DoComposite(*this, request, options);
}

}  // namespace volumed
