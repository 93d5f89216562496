#include "base/inotify.h"
#include "fakes/must.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/inotify.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace volumed {
namespace {

namespace fs = std::filesystem;

class InotifyTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/volumed_inotify_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    Result<Inotify> created = Inotify::Create();
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    inotify_ = std::make_unique<Inotify>(std::move(created).value());
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::vector<InotifyEvent> Events() { return Must(inotify_->ReadEvents()); }
  void Write(const std::string& name) { std::ofstream(directory_ / name) << "x"; }

  fs::path directory_;
  std::unique_ptr<Inotify> inotify_;
};

TEST_F(InotifyTest, NothingHappenedIsAnEmptyList) {
  ASSERT_TRUE(inotify_->AddWatch(directory_, IN_CREATE).ok());
  EXPECT_TRUE(Events().empty());
}

TEST_F(InotifyTest, EventsCarryWatchMaskAndName) {
  const Result<int> wd = inotify_->AddWatch(directory_, IN_CREATE | IN_CLOSE_WRITE | IN_DELETE);
  ASSERT_TRUE(wd.ok());
  Write("a.yaml");
  fs::remove(directory_ / "a.yaml");
  const std::vector<InotifyEvent> events = Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].mask, uint32_t{IN_CREATE});
  EXPECT_EQ(events[1].mask, uint32_t{IN_CLOSE_WRITE});
  EXPECT_EQ(events[2].mask, uint32_t{IN_DELETE});
  for (const InotifyEvent& event : events) {
    EXPECT_EQ(event.wd, *wd);
    EXPECT_EQ(event.name, "a.yaml");
    EXPECT_FALSE(event.overflow);
  }
}

TEST_F(InotifyTest, MoreEventsThanOneReadHolds) {
  ASSERT_TRUE(inotify_->AddWatch(directory_, IN_CREATE).ok());
  for (int i = 0; i < 1000; ++i) Write("a-file-with-a-long-name-" + std::to_string(i));
  const std::vector<InotifyEvent> events = Events();
  ASSERT_EQ(events.size(), 1000u);
  EXPECT_EQ(events.back().name, "a-file-with-a-long-name-999");
}

TEST_F(InotifyTest, AnUnwatchedDirectoryIsIgnored) {
  const Result<int> wd = inotify_->AddWatch(directory_, IN_CREATE);
  ASSERT_TRUE(wd.ok());
  ASSERT_TRUE(inotify_->RemoveWatch(*wd).ok());
  Write("b");
  const std::vector<InotifyEvent> events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].mask, uint32_t{IN_IGNORED});
  EXPECT_EQ(inotify_->RemoveWatch(*wd).error().code(), Code::kInvalidArgument);
}

TEST_F(InotifyTest, ARemovedDirectorySaysSo) {
  const fs::path inner = directory_ / "inner";
  fs::create_directory(inner);
  ASSERT_TRUE(inotify_->AddWatch(inner, IN_DELETE_SELF).ok());
  fs::remove(inner);
  const std::vector<InotifyEvent> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].mask & IN_DELETE_SELF, uint32_t{IN_DELETE_SELF});
  EXPECT_EQ(events[0].name, "");
  EXPECT_EQ(events[1].mask, uint32_t{IN_IGNORED});
}

TEST_F(InotifyTest, OnlyDirectoriesCanBeWatched) {
  Write("file");
  EXPECT_EQ(inotify_->AddWatch(directory_ / "file", IN_MODIFY).error().sys_errno(), ENOTDIR);
  EXPECT_EQ(inotify_->AddWatch(directory_ / "none", IN_MODIFY).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace volumed
