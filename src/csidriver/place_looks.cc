#include "csidriver/place_looks.h"

#include <memory>
#include <utility>

#include "csidriver/node_targets.h"
#include "operation/call_options.h"

namespace volumed {
namespace {

// Nobody tells when a lane gets better, as of those that take away nobody has to: if its workers
// are lost, a look is refused at once.
constexpr OperationLanes::Kind kLook{.takes_away = true};

bool IsNoAnswer(const Error& error) {
  const bool is_late =
      error.code() == Code::kDeadlineExceeded || error.code() == Code::kUnavailable;
  return is_late && error.sys_errno() == 0;
}

}  // namespace

Status CheckPlaceAnswers(Kernel& kernel, const SafePath& path, const CallOptions& call) {
  const Result<FsInfo> looked = kernel.Call(StatFs{.path = path}, OnPath(call, path));
  // What else is wrong there, whoever works there says better.
  if (looked.ok() || !IsNoAnswer(looked.error())) return OkStatus();
  return Error::NotApplied(looked.error().code(),
                           "the filesystem of " + ShownPath(path.Display()) +
                               " does not answer: " + looked.error().message());
}

PlaceLooks::PlaceLooks(const Parts& parts, Duration longest)
    : parts_(parts), longest_(longest), lanes_(parts.scheduler, parts.domains, LaneLimits{}) {}

bool PlaceLooks::HangsWithTheAgent(const SafePath& path) const {
  if (parts_.domains == nullptr || parts_.own_directory.empty()) return false;
  return parts_.domains->Locate(path.Display()).lane ==
         parts_.domains->Locate(parts_.own_directory).lane;
}

void PlaceLooks::Ask(std::vector<SafePath> paths, Done done) {
  std::erase_if(paths, [this](const SafePath& path) { return HangsWithTheAgent(path); });
  if (paths.empty()) return done(OkStatus());
  const FaultDomain domain{paths.front().Display(), ""};
  const auto place = std::make_shared<OperationLanes::PlaceId>(0);
  *place =
      lanes_.Enter(domain, kLook, [this, place, paths = std::move(paths), done = std::move(done)] {
        parts_.scheduler.RunBlocking([this, place, paths, done] {
          CallOptions call;
          call.deadline = Deadline::After(parts_.scheduler.clock(), longest_);
          const Status answer = CheckPlaceAnswers(parts_.kernel, paths.front(), call);
          parts_.scheduler.Post([this, place, paths, done, answer] {
            lanes_.Leave(*place);
            if (!answer.ok()) return done(answer);
            Ask({paths.begin() + 1, paths.end()}, done);
          });
        });
      });
}

}  // namespace volumed
