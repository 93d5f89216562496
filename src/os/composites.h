// The composite requests as functions over Kernel&. A worker runs them beside the kernel, in one
// round trip with one deadline; FakeKernel, and whatever decorates a Kernel, runs them primitive by
// primitive, so that a failure, a hang or an end may come between any two.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Makes a composite request out of calls of `kernel`, each with `options` as they are. REQUIRES: it
// is one.
//
// Threads: any. Blocks: as the calls do. Errors: as composite_requests.h says. While it runs, the
// thread keeps the roots open that it has opened (KeptRoots).
Result<AnyAnswer> DoComposite(Kernel& kernel, const AnyRequest& request,
                              const CallOptions& options);

// Whether a request of this type is made of others. The second function asks the same of a value.
template <typename Request>
inline constexpr bool kIsComposite = requires {
  Request::kIsComposite;
};
bool IsComposite(const AnyRequest& request);

// Calls the overload of `effects` for the primitive request, and gives its answer. `effects` has
// one for each primitive. Internal, not applied, for a composite.
template <typename Effects>
Result<AnyAnswer> DoPrimitive(Effects&& effects, const AnyRequest& request) {
  return std::visit(
      [&effects](const auto& r) -> Result<AnyAnswer> {
        using Request = std::decay_t<decltype(r)>;
        if constexpr (kIsComposite<Request>) {
          return Error::NotApplied(Code::kInternal,
                                   std::string(r.kName) + " is no primitive effect");
        } else {
          Result<typename Request::Answer> answer = effects(r);
          if (!answer.ok()) return answer.error();
          return AnyAnswer(std::move(answer).value());
        }
      },
      request);
}

}  // namespace volumed
