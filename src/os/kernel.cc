#include "os/kernel.h"

#include <algorithm>

#include "base/mutex.h"
#include "base/wire_fields.h"

namespace volumed {

std::string_view FileTypeName(FileType type) {
  switch (type) {
    case FileType::kMissing:
      return "missing";
    case FileType::kRegular:
      return "file";
    case FileType::kDirectory:
      return "directory";
    case FileType::kSymlink:
      return "symlink";
    case FileType::kSocket:
      return "socket";
    case FileType::kCharDevice:
      return "character device";
    case FileType::kBlockDevice:
      return "block device";
    case FileType::kFifo:
      return "fifo";
  }
  return "unknown";
}

std::string_view RequestName(const AnyRequest& request) {
  return std::visit([](const auto& r) { return std::string_view(r.kName); }, request);
}

LaneKind LaneKindOf(const AnyRequest& request) {
  const auto resolve = [](const auto& r) {
    using R = std::decay_t<decltype(r)>;
    constexpr LaneKind kKind = R::kLane;
    if constexpr (kKind == LaneKind::kDeviceIfExpected) {
      return r.expected_device ? LaneKind::kDevice : LaneKind::kOwnFilesystem;
    } else if constexpr (kKind == LaneKind::kOfItems) {
      const bool walks = std::any_of(r.items.begin(), r.items.end(), [](const BatchItem& item) {
        return LaneKindOf(item.request) == LaneKind::kWalks;
      });
      return walks ? LaneKind::kWalks : LaneKind::kOwnFilesystem;
    } else {
      return kKind;
    }
  };
  return std::visit(resolve, request);
}

std::string RequestPath(const AnyRequest& request) {
  return std::visit(
      [](const auto& r) -> std::string {
        using R = std::decay_t<decltype(r)>;
        if constexpr (requires { r.target; }) {
          return r.target.Display();
        } else if constexpr (requires { r.path; }) {
          return r.path.Display();
        } else if constexpr (requires { r.to; }) {
          return r.to.Display();
        } else if constexpr (requires { r.point; }) {
          return r.point.mount_point.Display();
        } else if constexpr (requires { r.cuts; }) {
          return r.freeze.empty() ? "" : r.freeze[0].mount_point.Display();
        } else if constexpr (requires { r.of_volume; }) {
          return r.of_volume.Display();
        } else if constexpr (requires { r.below; }) {
          return r.below.empty() ? r.around : r.below;
        } else if constexpr (requires { r.device; }) {
          return r.device;
        } else if constexpr (requires { r.arguments; }) {
          return r.arguments.empty() ? "" : r.arguments[0];
        } else {
          static_assert(std::is_same_v<R, ProbeFeatures>, "name the path of the new request");
          return "";
        }
      },
      request);
}

bool MustFinish(const AnyRequest& request) {
  return std::visit(
      [](const auto& r) {
        using R = std::decay_t<decltype(r)>;
        if constexpr (requires { R::kMustFinish; }) {
          return R::kMustFinish;
        } else {
          return r.MustFinish();
        }
      },
      request);
}

namespace {

// Visits the fields of a request (base/wire_fields.h) for one that is a Secret.
class SecretFinder {
 public:
  template <typename T>
  void operator()(uint32_t /*number*/, const T& value) {
    if constexpr (wire::kIs<Secret, T>) {
      found_ = true;
    } else if constexpr (wire::kIs<std::optional, T>) {
      if (value) (*this)(0, *value);
    } else if constexpr (wire::kIs<std::vector, T>) {
      for (const auto& element : value) (*this)(0, element);
    } else if constexpr (wire::kIs<std::map, T>) {
      for (const auto& [key, element] : value) (*this)(0, element);
    } else if constexpr (wire::kIs<std::variant, T>) {
      std::visit([this](const auto& kind) { (*this)(0, kind); }, value);
    } else if constexpr (!wire::kIsVarint<T> && !wire::kIsBytes<T>) {
      WireFieldsOf<T>::WireFields(*this, value);
    }
  }
  void If(uint32_t number, const auto& message, bool /*condition*/) { (*this)(number, message); }
  void OptionalList(uint32_t /*is_set*/, uint32_t number, const auto& list) {
    (*this)(number, list);
  }
  void NotSent(const auto& /*member*/) {}
  bool found() const { return found_; }

 private:
  bool found_ = false;
};

}  // namespace

bool HasSecret(const AnyRequest& request) {
  SecretFinder finder;
  finder(0, request);
  return finder.found();
}

struct CancelToken::Impl {
  mutable Mutex mu;
  bool cancelled GUARDED_BY(mu) = false;
  std::function<void()> hook GUARDED_BY(mu);
};

CancelToken::CancelToken() : impl_(std::make_unique<Impl>()) {}
CancelToken::~CancelToken() = default;

// The hook runs under the lock, so that no call of an old hook is running once OnCancel() has
// replaced it: what the hook refers to may then be destroyed.
void CancelToken::Cancel() {
  MutexLock lock(impl_->mu);
  if (impl_->cancelled) return;
  impl_->cancelled = true;
  if (impl_->hook) impl_->hook();
}

bool CancelToken::cancelled() const {
  MutexLock lock(impl_->mu);
  return impl_->cancelled;
}

void CancelToken::OnCancel(std::function<void()> hook) {
  MutexLock lock(impl_->mu);
  impl_->hook = std::move(hook);
  if (impl_->cancelled && impl_->hook) impl_->hook();
}

}  // namespace volumed
