#include "plugins/iscsi_names.h"

#include <gtest/gtest.h>
#include <pthread.h>

namespace volumed {
namespace {

std::string Read(const std::string& path) {
  const std::optional<IscsiNames> names = ParseIscsiNames(path);
  if (!names) return "none";
  return names->iface + " " + IscsiVolumeName(names->portal, names->iqn, names->lun);
}

TEST(IscsiNamesTest, APlaceNamesItsDisk) {
  EXPECT_EQ(Read("/r/iface-default/10.0.0.1:3260-iqn.2026-01.org:disk-lun-7"),
            "default 10.0.0.1:3260:iqn.2026-01.org:disk:7");
  EXPECT_EQ(Read("/iface-a:3260:pv/my-nas:3260-eui.02004567A425678D-lun-0"),
            "a:3260:pv my-nas:3260:eui.02004567A425678D:0");
  EXPECT_EQ(Read("/iface-x/[fd00::1]:3260-naa.5-lun-1-lun-2"), "x [fd00::1]:3260:naa.5-lun-1:2");
}

TEST(IscsiNamesTest, OtherPlacesNameNone) {
  for (const char* path :
       {"", "/", "iface-x/a:1-iqn.b-lun-1", "/iface-/a:1-iqn.b-lun-1", "/other/a:1-iqn.b-lun-1",
        "/iface-x/a-iqn.b-lun-1", "/iface-x/:1-iqn.b-lun-1", "/iface-x/a:1-iqn.-lun-1",
        "/iface-x/a:1-iqn.b-lun-", "/iface-x/a:1-iqn.b-lun-x", "/iface-x/a:1-iqn.b",
        "/iface-x/a:1-iqn.b-lun-1/", "/iface-x/a:1-iqn.b-lun-99999999999999999999"}) {
    EXPECT_EQ(Read(path), "none") << path;
  }
}

// It was a regular expression, which overflowed the stack of an operation's thread.
TEST(IscsiNamesTest, ALongNameNeedsNoMoreStackThanAShortOne) {
  std::string result;
  const auto read = [](void* out) -> void* {
    const std::string iqn = "iqn.2026-01.org:" + std::string(8000, 'x');
    *static_cast<std::string*>(out) = Read("/iface-default/10.0.0.1:3260-" + iqn + "-lun-1");
    return nullptr;
  };
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);  // ExecutorOptions
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, read, &result), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  EXPECT_NE(result, "none");
}

}  // namespace
}  // namespace volumed
