#include "os/mount_helper.h"

#include <libmount/libmount.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/strings.h"

namespace volumed {
namespace {

struct ContextDeleter {
  void operator()(libmnt_context* context) const { mnt_free_context(context); }
};

// A type is a word; "../x" would leave /sbin. "fuse.sshfs" is mounted by mount.fuse.
bool IsPlainType(const std::string& fs_type) {
  return !fs_type.empty() && fs_type.find('/') == std::string::npos && fs_type[0] != '.';
}

// What mount(8) would print; without the options, which may hold a password.
std::string FailureText(libmnt_context* context, int rc) {
  char text[512] = "";
  mnt_context_get_excode(context, rc, text, sizeof(text));
  return text;
}

}  // namespace

bool HasMountHelper(const std::string& fs_type) {
  if (!IsPlainType(fs_type)) return false;
  const std::string family = fs_type.substr(0, fs_type.find('.'));
  return ::access(("/sbin/mount." + fs_type).c_str(), X_OK) == 0 ||
         (family != fs_type && ::access(("/sbin/mount." + family).c_str(), X_OK) == 0);
}

Status MountWithHelper(const Mount& request) {
  const std::string what = "mount " + request.fs_type + " on " + request.target.Display();
  std::unique_ptr<libmnt_context, ContextDeleter> context(mnt_new_context());
  if (context == nullptr) return Error::FromErrno(ENOMEM, what, Outcome::kNotApplied);
  const std::string options = Join(request.options, ",");
  const bool ready = mnt_context_disable_canonicalize(context.get(), 1) == 0 &&
                     mnt_context_disable_mtab(context.get(), 1) == 0 &&
                     mnt_context_set_fstype(context.get(), request.fs_type.c_str()) == 0 &&
                     mnt_context_set_source(context.get(), request.source.c_str()) == 0 &&
                     mnt_context_set_target(context.get(), request.target.Display().c_str()) == 0 &&
                     mnt_context_set_options(context.get(), options.c_str()) == 0;
  if (!ready) return Error::FromErrno(EINVAL, what, Outcome::kNotApplied);
  const int rc = mnt_context_mount(context.get());
  if (rc == 0 && mnt_context_get_status(context.get()) == 1) return OkStatus();
  const std::string text = FailureText(context.get(), rc);
  if (rc > 0) return Error::FromErrno(rc, what + " (" + text + ")", Outcome::kNotApplied);
  const int status = mnt_context_get_helper_status(context.get());
  return Error::NotApplied(Code::kUnknown, what + ": the mount helper ended with status " +
                                               std::to_string(status) + " " + text);
}

}  // namespace volumed
