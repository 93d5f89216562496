// FakeOpenIscsi: iscsiadm, the kernel's sessions and an iSCSI target, on a FakeKernel. All of its
// state is files of that kernel (open-iscsi's records, sysfs, device nodes), so that it outlives
// the agents of a test, and is cloned and goes with the kernel.
//
// It does what the real ones do where a mistake would do harm, and notes it: a disk that is deleted
// unflushed or in use, a session that is ended under a disk that somebody has, a login without the
// secret that the target asks for. A command line with that secret is such a mistake too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fakes/fake_kernel.h"

namespace volumed {

// The target, and what is to happen with it. Shared by all clones of a kernel.
struct FakeIscsiTarget {
  std::string iqn = "iqn.2026-01.lab:t";
  std::vector<std::string> portals = {"10.0.0.1:3260"};
  std::set<std::string> dead_portals;
  // LUN -> the node of its disk by the first portal, "/dev/sdb"; by the n-th it has n more letters:
  // "/dev/sdbb".
  std::map<int64_t, std::string> luns;
  std::string chap_user;      // empty: none is asked for
  std::string chap_password;  // of sessions, and of discovery
  bool chap_discovery = false;
  bool daemon_runs = true;
  bool multipath = false;       // multipathd makes a device over two paths of a LUN
  bool names_multipath = true;  // and udevd its link
};

inline constexpr char kFakeIscsiadm[] = "/usr/sbin/iscsiadm";

// To be made once for a kernel; nothing has to be kept.
void InstallFakeOpenIscsi(FakeKernel& kernel, std::shared_ptr<FakeIscsiTarget> target);

// The disks are devices of the kernel from now on, whose nodes come with a session.
void AddFakeLun(FakeKernel& kernel, const FakeIscsiTarget& target, int64_t lun, FakeDevice disk);

// What was done wrong, one line each.
std::vector<std::string> FakeIscsiMistakes(const FakeKernel& kernel);
// "session1 iqn.2026-01.lab:t 10.0.0.1:3260 default", as they are now.
std::vector<std::string> FakeIscsiSessions(const FakeKernel& kernel);
// Each command line of iscsiadm, in order, without the program.
std::vector<std::string> FakeIscsiCalls(const FakeKernel& kernel);
// Of node records: their paths below nodes/.
std::vector<std::string> FakeIscsiNodes(const FakeKernel& kernel);

}  // namespace volumed
