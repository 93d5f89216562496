// Mistakes that do harm only while operations overlap: in order, each finds things as it should.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "unit/crash/crash_scenarios.h"
#include "unit/crash/seeded_bugs.h"
#include "unit/crash/seeded_operations.h"

namespace volumed {
namespace {

// A storage that is taken is not held during an effect: it is let go of before, and taken again
// after it.
class UnreservedKernel final : public Kernel {
 public:
  struct Mistake {
    std::function<bool(const AnyRequest& request)> at;
    StorageHolder holder;
    StorageName name;
  };
  UnreservedKernel(Kernel& real, CrashWorld& world, Mistake mistake)
      : real_(real), world_(world), mistake_(std::move(mistake)) {}

  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const StorageHolder& holder = mistake_.holder;
    const bool had_it = mistake_.at(request) && world_.storage->Has(holder.id, holder.use);
    if (!had_it) return real_.Do(request, options);
    (void)world_.storage->Release(holder.id);
    Result<AnyAnswer> answer = real_.Do(request, options);
    (void)world_.storage->Take(holder, mistake_.name, options);
    return answer;
  }

 private:
  Kernel& real_;
  CrashWorld& world_;
  const Mistake mistake_;
};

SeededBug Unreserved(const std::string& name, const UnreservedKernel::Mistake& mistake) {
  SeededBug bug;
  bug.name = name;
  bug.kernel = [mistake](Kernel& real, CrashWorld& world) -> std::unique_ptr<Kernel> {
    return std::make_unique<UnreservedKernel>(real, world, mistake);
  };
  return bug;
}

// A pod's operation that has its device beside those of other pods.
class BesideOthers final : public LoneOperation {
 public:
  using LoneOperation::LoneOperation;
  OperationTraits Traits(const OperationParts& parts) const override {
    OperationTraits traits = LoneOperation::Traits(parts);
    traits.use = DeviceUse::kNone;
    return traits;
  }
};

// Pods' operations do not know of each other's, though a driver works for all of them.
class UnorderedOperations final : public PassingOperations {
 public:
  explicit UnorderedOperations(const SeededOperations& parts) : PassingOperations(parts.real) {}
  std::vector<StartResult> StartAll(
      std::vector<std::unique_ptr<AnyOperation>> operations) override {
    for (std::unique_ptr<AnyOperation>& operation : operations) {
      const bool is_of_pod =
          As<MountVolume>(*operation) != nullptr || As<UnmountVolume>(*operation) != nullptr;
      if (is_of_pod) operation = std::make_unique<BesideOthers>(std::move(operation));
    }
    return PassingOperations::StartAll(std::move(operations));
  }
};

}  // namespace

std::vector<SeededBugCase> SeededOverlapBugs() {
  const UnreservedKernel::Mistake emptied{
      .at =
          [](const AnyRequest& request) {
            return (std::holds_alternative<RemoveTree>(request) ||
                    std::holds_alternative<RemoveFile>(request)) &&
                   (RequestPath(request) + "/").find("/srv/outer/") != std::string::npos;
          },
      .holder = {.id = "reclaim/outer",
                 .volume = "outer",
                 .use = StorageUse::kReclaim,
                 .persistent = true,
                 .text = "persistent volume outer"},
      .name = {"/srv/outer"}};
  return {
      {InOperations<TwiceMountedOperations>("a new device mounted by two at once"),
       TwoPodsAtOnceScenario()},
      {Unreserved("a volume not reserved while it is emptied", emptied),
       EmptiedAsAPodComesScenario()},
      {InOperations<UnorderedOperations>("a CSI driver called for two pods of a volume at once"),
       CsiTwoPodsAtOnceScenario()},
  };
}

}  // namespace volumed
