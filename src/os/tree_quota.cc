#include "os/tree_quota.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <string>

#include "os/btrfs_search.h"
#include "os/safe_open.h"
#include "os/storage_identity.h"
#include "os/subvolume.h"
#include "os/syscall_numbers.h"

// Newer than glibc 2.36's headers. Source: Linux include/uapi/linux/quota.h.
#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif

namespace volumed {
namespace {

constexpr int kForQuota = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
constexpr int64_t kQuotaBlock = 1024;  // in which limits are set; Source: quotactl(2)
// In which they are read. Source: Linux include/uapi/linux/dqblk_xfs.h.
constexpr int64_t kBasicBlock = 512;

Error QuotaError(int error, const std::string& what, const std::string& step, Outcome outcome) {
  return Error::FromErrno(error, what + ", " + step, outcome);
}

// ---- of projects

// The kernel counts no projects here: why, for people; empty if the error says something else.
std::string WhyNoProjects(int error, bool is_xfs) {
  switch (error) {
    case ENOSYS:
    case EOPNOTSUPP:
    case EINVAL:
    case ENOTTY:
      return "its filesystem has no project quota on this kernel, or was mounted without prjquota";
    case ESRCH:
      return is_xfs ? "project quota is off: the filesystem has to be mounted with prjquota"
                    : "project quota is off: the filesystem has to have the feature project and "
                      "to be mounted with prjquota";
    default:
      return "";
  }
}

class ProjectQuota {
 public:
  ProjectQuota(int directory, const std::string& what) : directory_(directory), what_(what) {}

  Result<TreeQuota> Read() {
    ASSIGN_OR_RETURN(const fsxattr attributes, Attributes());
    // Of project 0 is what nobody has given to one; it shows whether there are accounts.
    ASSIGN_OR_RETURN(const fs_disk_quota account, Account(attributes.fsx_projid));
    TreeQuota quota;
    if (attributes.fsx_projid == 0) return quota;
    quota.kind = TreeQuotaKind::kProject;
    quota.id = attributes.fsx_projid;
    quota.limit_bytes = static_cast<int64_t>(account.d_blk_hardlimit) * kBasicBlock;
    quota.used_bytes = static_cast<int64_t>(account.d_bcount) * kBasicBlock;
    quota.limit_inodes = static_cast<int64_t>(account.d_ino_hardlimit);
    quota.used_inodes = static_cast<int64_t>(account.d_icount);
    return quota;
  }

  Result<TreeQuota> Set(const SetTreeQuota& request) {
    if (request.limit_alone) return SetLimitAlone(request);
    ASSIGN_OR_RETURN(fsxattr attributes, Attributes());
    const uint32_t has = attributes.fsx_projid;
    const uint32_t project = request.project_id == 0 ? has : request.project_id;
    ASSIGN_OR_RETURN(const fs_disk_quota account, Account(project));
    if (project == 0) return Refused(Code::kInvalidArgument, "it is of no project");
    if (has != 0 && has != project) {
      return Refused(Code::kFailedPrecondition, "it is of project " + std::to_string(has));
    }
    if (has == 0 && account.d_icount != 0) {
      return Refused(Code::kAlreadyExists,
                     "project " + std::to_string(project) + " has files already");
    }
    // The limit comes first, so that what has a project is bounded.
    RETURN_IF_ERROR(Limit(project, request));
    const bool inherits = (attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0;
    if (has != project || !inherits) {
      attributes.fsx_projid = project;
      attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
      if (::ioctl(directory_, FS_IOC_FSSETXATTR, &attributes) != 0) {
        return QuotaError(errno, what_, "set its project", Outcome::kMaybeApplied);
      }
    }
    if (::fsync(directory_) != 0) {
      return QuotaError(errno, what_, "sync", Outcome::kMaybeApplied);
    }
    Result<TreeQuota> set = Read();
    if (!set.ok()) return set.error().AsMaybeApplied();
    return set;
  }

 private:
  Result<TreeQuota> SetLimitAlone(const SetTreeQuota& request) {
    if (request.project_id == 0) {
      return Refused(Code::kInvalidArgument, "it is not said of which project");
    }
    RETURN_IF_ERROR(Account(request.project_id));
    RETURN_IF_ERROR(Limit(request.project_id, request));
    if (::fsync(directory_) != 0) {
      return QuotaError(errno, what_, "sync", Outcome::kMaybeApplied);
    }
    Result<TreeQuota> there = Read();
    if (!there.ok()) return there.error().AsMaybeApplied();
    return there;
  }

  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }
  Error Failed(int error, const std::string& step) const {
    struct statfs info = {};
    const bool is_xfs = ::fstatfs(directory_, &info) == 0 && info.f_type == XFS_SUPER_MAGIC;
    const std::string why = WhyNoProjects(error, is_xfs);
    if (!why.empty()) return Refused(Code::kUnimplemented, why);
    return QuotaError(error, what_, step, Outcome::kNotApplied);
  }

  Result<fsxattr> Attributes() const {
    fsxattr attributes = {};
    if (::ioctl(directory_, FS_IOC_FSGETXATTR, &attributes) == 0) return attributes;
    return Failed(errno, "ask for its project");
  }

  long Call(int command, uint32_t project, void* block) const {
    return ::syscall(kSysQuotactlFd, directory_, QCMD(command, PRJQUOTA), project, block);
  }

  // A project that nobody has used has an account of zeros. Q_GETQUOTA would be EROFS by a mount
  // that is read-only, as a volume's for readers is. Source: Linux fs/quota/quota.c
  // (quotactl_cmd_write).
  Result<fs_disk_quota> Account(uint32_t project) const {
    fs_disk_quota account = {};
    if (Call(Q_XGETQUOTA, project, &account) == 0) return account;
    return errno == ENOENT ? Result<fs_disk_quota>(account) : Failed(errno, "read its account");
  }

  Status Limit(uint32_t project, const SetTreeQuota& request) const {
    dqblk block = {};
    block.dqb_bhardlimit = static_cast<uint64_t>((request.bytes + kQuotaBlock - 1) / kQuotaBlock);
    block.dqb_bsoftlimit = block.dqb_bhardlimit;
    block.dqb_ihardlimit = static_cast<uint64_t>(request.inodes);
    block.dqb_isoftlimit = block.dqb_ihardlimit;
    block.dqb_valid = QIF_LIMITS;
    if (Call(Q_SETQUOTA, project, &block) == 0) return OkStatus();
    return Failed(errno, "set its limit");
  }

  const int directory_;
  const std::string& what_;
};

// ---- of subvolumes

class QgroupQuota {
 public:
  QgroupQuota(int directory, const std::string& what) : directory_(directory), what_(what) {}

  Result<TreeQuota> Read() const {
    if (!IsSubvolumeRoot(directory_)) {
      return Refused(Code::kUnimplemented,
                     "btrfs counts and bounds subvolumes alone, and it is no root of one");
    }
    ASSIGN_OR_RETURN(const uint64_t id, SubvolumeIdOf(directory_, what_));
    TreeQuota quota;
    for (const uint32_t type : {BTRFS_QGROUP_INFO_KEY, BTRFS_QGROUP_LIMIT_KEY}) {
      BtrfsSearch search(BTRFS_QUOTA_TREE_OBJECTID, type);
      search.key().min_offset = search.key().max_offset = id;
      if (!search.Run(directory_)) {
        if (errno == ENOENT) return TreeQuota{};  // the accounts are off
        return QuotaError(errno, what_, "read its account", Outcome::kNotApplied);
      }
      if (!search.found()) continue;
      quota.kind = TreeQuotaKind::kQgroup;
      quota.id = id;
      Take(search, type, quota);
    }
    return quota;
  }

  Result<TreeQuota> Set(const SetTreeQuota& request) const {
    if (request.inodes != 0) {
      return Refused(Code::kInvalidArgument, "btrfs does not count inodes");
    }
    if (request.limit_alone) return Refused(Code::kInvalidArgument, "btrfs has no projects");
    ASSIGN_OR_RETURN(const TreeQuota before, Read());
    if (before.kind == TreeQuotaKind::kNone) {
      btrfs_ioctl_quota_ctl_args on = {};
      on.cmd = BTRFS_QUOTA_CTL_ENABLE;  // success if they are on
      if (::ioctl(directory_, BTRFS_IOC_QUOTA_CTL, &on) != 0) {
        return QuotaError(errno, what_, "switch the accounts on", Outcome::kNotApplied);
      }
    }
    ASSIGN_OR_RETURN(const Descriptor from, OpenOutside(request.path));
    btrfs_ioctl_qgroup_limit_args limit = {};
    ASSIGN_OR_RETURN(limit.qgroupid, SubvolumeIdOf(directory_, what_));
    limit.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
    limit.lim.max_rfer = request.bytes == 0 ? kNoLimit : static_cast<uint64_t>(request.bytes);
    if (::ioctl(from.get(), BTRFS_IOC_QGROUP_LIMIT, &limit) != 0) {
      return QuotaError(errno, what_, "set its limit", Outcome::kNotApplied);
    }
    // The limit is in memory until the next commit.
    if (::syncfs(directory_) != 0) {
      return QuotaError(errno, what_, "sync", Outcome::kMaybeApplied);
    }
    Result<TreeQuota> set = Read();
    if (!set.ok()) return set.error().AsMaybeApplied();
    return set;
  }

 private:
  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }

  // What the limit is set by. The call needs room in the subvolume by which it is made, and one
  // that has more than it may (its limit was lowered, or it is the copy of such a one) has none
  // left, not even for a higher limit. So it is what the subvolume is in, if that is on the same
  // filesystem, as it is unless something is mounted at the path. Source: Linux fs/btrfs/ioctl.c
  // (btrfs_ioctl_qgroup_limit).
  Result<Descriptor> OpenOutside(const SafePath& path) const {
    ASSIGN_OR_RETURN(const ParentAndName place, OpenParent(path).With(what_));
    for (const int candidate : {place.parent.get(), directory_}) {
      ASSIGN_OR_RETURN(
          Descriptor opened,
          DescriptorFrom(::open(ProcFdPath(candidate).c_str(), kForQuota | O_CLOEXEC), what_));
      if (IsSameBtrfs(opened.get(), directory_)) return opened;
    }
    return Refused(Code::kInternal, "btrfs does not say which filesystem it is");
  }

  static bool IsSameBtrfs(int a, int b) {
    btrfs_ioctl_fs_info_args of_a = {};
    btrfs_ioctl_fs_info_args of_b = {};
    return ::ioctl(a, BTRFS_IOC_FS_INFO, &of_a) == 0 && ::ioctl(b, BTRFS_IOC_FS_INFO, &of_b) == 0 &&
           std::equal(std::begin(of_a.fsid), std::end(of_a.fsid), std::begin(of_b.fsid));
  }

  // Takes a limit away. Source: Linux fs/btrfs/qgroup.c (btrfs_limit_qgroup, CLEAR_VALUE).
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  static void Take(BtrfsSearch& found, uint32_t type, TreeQuota& quota) {
    btrfs_qgroup_info_item info = {};
    if (type == BTRFS_QGROUP_INFO_KEY && found.Read(info)) {
      quota.used_bytes = static_cast<int64_t>(info.rfer);
    }
    btrfs_qgroup_limit_item limit = {};
    if (type == BTRFS_QGROUP_LIMIT_KEY && found.Read(limit)) {
      const bool is_set = (limit.flags & BTRFS_QGROUP_LIMIT_MAX_RFER) != 0;
      quota.limit_bytes = is_set ? static_cast<int64_t>(limit.max_rfer) : 0;
    }
  }

  const int directory_;
  const std::string& what_;
};

}  // namespace

Result<TreeQuota> DoSetTreeQuota(const SetTreeQuota& request, const KernelFeatures& features) {
  const std::string what = "set the quota of " + request.path.Display();
  if (request.bytes < 0 || request.inodes < 0) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": a limit is below zero");
  }
  ASSIGN_OR_RETURN(const Descriptor directory, OpenSafePath(request.path, kForQuota).With(what));
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(CheckIsExpected(directory.get(), request.expected, features).With(what));
  }
  if (IsOnBtrfs(directory.get())) return QgroupQuota(directory.get(), what).Set(request);
  return ProjectQuota(directory.get(), what).Set(request);
}

Result<TreeQuota> DoReadTreeQuota(const ReadTreeQuota& request) {
  const std::string what = "read the quota of " + request.path.Display();
  ASSIGN_OR_RETURN(const Descriptor directory, OpenSafePath(request.path, kForQuota).With(what));
  if (IsOnBtrfs(directory.get())) return QgroupQuota(directory.get(), what).Read();
  return ProjectQuota(directory.get(), what).Read();
}

}  // namespace volumed
