// A kept mount table in a mount namespace of its own, beside a fresh reading of mountinfo.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "integration/mount_namespace_fixture.h"
#include "os/kept_mount_table.h"
#include "os/kernel_features.h"
#include "os/mount_table.h"

namespace volumed {

inline std::string Text(const MountEntry& entry) {
  return std::to_string(entry.mount_id) + " " + std::to_string(entry.parent_id) + " " +
         std::to_string(entry.device_major) + ":" + std::to_string(entry.device_minor) + " [" +
         entry.root + "] [" + entry.mount_point + "] " + Join(entry.options, ",") + " " +
         Join(entry.propagation, " ") + " - " + entry.fs_type + " [" + entry.source + "] " +
         Join(entry.super_options, ",");
}

inline std::vector<std::string> Texts(const std::vector<MountEntry>& entries) {
  std::vector<std::string> texts;
  for (const MountEntry& entry : entries) texts.push_back(Text(entry));
  return texts;
}

inline std::vector<std::string> Points(const std::vector<MountEntry>& entries) {
  std::vector<std::string> points;
  for (const MountEntry& entry : entries) points.push_back(entry.mount_point);
  return points;
}

class KeptMountTableTest : public MountNamespaceTest {
 protected:
  void Open(const std::vector<std::string>& masked) {
    const Result<KernelFeatures> features = ProbeKernelFeatures(masked);
    ASSERT_TRUE(features.ok());
    features_ = *features;
    auto table = KeptMountTable::Open(
        features_, {scratch() + "/watched",
                    [this](const std::vector<std::string>& points) {
                      gone_.insert(gone_.end(), points.begin(), points.end());
                    },
                    [this](const std::vector<std::string>& points) {
                      elsewhere_.insert(elsewhere_.end(), points.begin(), points.end());
                    }});
    ASSERT_TRUE(table.ok()) << table.error().ToString();
    table_ = std::move(table).value();
  }
  void TearDown() override {
    table_.reset();
    MountNamespaceTest::TearDown();
  }

  std::string At(const std::string& name) const { return scratch() + "/" + name; }
  void Directory(const std::string& name) {
    ASSERT_EQ(::mkdir(At(name).c_str(), 0755), 0) << name << ": " << std::strerror(errno);
  }
  void Tmpfs(const std::string& name) {
    ASSERT_EQ(::mount(name.c_str(), At(name).c_str(), "tmpfs", 0, nullptr), 0) << name;
  }
  void Bind(const std::string& from, const std::string& to) {
    ASSERT_EQ(::mount(At(from).c_str(), At(to).c_str(), nullptr, MS_BIND, nullptr), 0) << to;
  }
  void Change(const std::string& name, unsigned long flags, const char* data = nullptr) {
    ASSERT_EQ(::mount(nullptr, At(name).c_str(), nullptr, flags, data), 0) << std::strerror(errno);
  }
  void Unmount(const std::string& name, int flags = 0) {
    ASSERT_EQ(::umount2(At(name).c_str(), flags), 0) << name << ": " << std::strerror(errno);
  }

  std::vector<MountEntry> Below(const std::string& path) { return Find({.below = path}); }
  std::vector<MountEntry> Find(const ListMounts& question) {
    auto mounts = table_->Find(question);
    EXPECT_TRUE(mounts.ok()) << mounts.error().ToString();
    return mounts.ok() ? *mounts : std::vector<MountEntry>();
  }
  std::vector<std::string> PointsBelow(const std::string& path) { return Points(Below(path)); }
  std::vector<std::string> Fresh(const std::string& path) {
    return Texts(SelectMounts(ReadMountTable().value(), {.below = path}));
  }
  // By every part of a filesystem that is mounted at a path or below it, and by each place.
  void ExpectRight(const ListMounts& question, const std::vector<MountEntry>& table) {
    EXPECT_EQ(Texts(Find(question)), Texts(SelectMounts(table, question)));
  }
  // Each question once, and of very many alike mounts only some: an answer has all of them.
  void ExpectFreshParts(const std::string& path) {
    const std::vector<MountEntry> table = ReadMountTable().value();
    std::set<std::string> asked;
    size_t here = 0;
    for (const MountEntry& mount : table) {
      if (!IsAtOrBelow(mount.mount_point, path)) continue;
      FilesystemPart part = PlaceOf(mount).part;
      const std::string device =
          std::to_string(part.device_major) + ":" + std::to_string(part.device_minor);
      if (asked.insert(device + part.root).second) {
        ExpectRight(ListMounts{.showing = part}, table);
        part.root.clear();
        ExpectRight(ListMounts{.showing = part}, table);
      }
      if (++here % 50 == 1) ExpectRight(ListMounts{.around = mount.mount_point + "/x"}, table);
    }
  }
  void ExpectFresh(const std::string& path) {
    const std::vector<std::string> kept = Texts(Below(path));
    EXPECT_EQ(kept, Fresh(path));
    EXPECT_FALSE(kept.empty());
    ExpectFreshParts(path);
  }

  KernelFeatures features_;
  std::unique_ptr<KeptMountTable> table_;
  // What the watch was told of.
  std::vector<std::string> gone_;
  std::vector<std::string> elsewhere_;
};

}  // namespace volumed
