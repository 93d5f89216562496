// What a kubelet's NodePublishVolume for an inline volume asks of a pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "csidriver/csi_inline_wish.h"
#include "csidriver/csi_volume_wish.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

const std::string kInlineTestHandle = "csi-" + std::string(64, 'a');
const SafePath kInlineTestTarget = {"/var/lib/kubelet", "pods/u/volumes/kubernetes.io~csi/v/mount",
                                    Resolve::kNoSymlinks};

::csi::v1::NodePublishVolumeRequest InlineTestRequest(const StringMap& attributes = {}) {
  ::csi::v1::NodePublishVolumeRequest request;
  request.set_volume_id(kInlineTestHandle);
  auto& context = *request.mutable_volume_context();
  context["csi.storage.k8s.io/ephemeral"] = "true";
  context["csi.storage.k8s.io/pod.name"] = "web";
  context["csi.storage.k8s.io/pod.namespace"] = "shop";
  context["csi.storage.k8s.io/pod.uid"] = "u";
  context["csi.storage.k8s.io/serviceAccount.name"] = "default";
  for (const auto& [key, value] : attributes) context[key] = value;
  return request;
}

// "" or the error's message.
std::string InlineTestRefusal(const ::csi::v1::NodePublishVolumeRequest& request,
                              const CsiCapabilityWish& capability = {}) {
  const Result<PoolVolumeWish> wish = ParseCsiInlineWish(request, capability, kInlineTestTarget);
  if (wish.ok()) return "";
  EXPECT_EQ(wish.error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(wish.error().maybe_applied());
  return wish.error().message();
}

TEST(CsiInlineWish, HasTheSizeTheKindAndThePodOfTheRequest) {
  CsiCapabilityWish capability;
  capability.fs_type = "xfs";
  const Result<PoolVolumeWish> wish = ParseCsiInlineWish(
      InlineTestRequest({{"size", "2Gi"}, {"pool", "fast"}}), capability, kInlineTestTarget);
  ASSERT_TRUE(wish.ok()) << wish.error().ToString();
  EXPECT_EQ(wish->size.required_bytes, int64_t{2} << 30);
  EXPECT_EQ(wish->parameters, (StringMap{{"pool", "fast"}, {"csi.storage.k8s.io/fstype", "xfs"}}));
  const PoolInline use = {kInlineTestTarget.Display(), "/var/lib/kubelet", "shop", "web", "u"};
  EXPECT_EQ(wish->inline_use, use);
  EXPECT_FALSE(wish->is_block);
}

TEST(CsiInlineWish, ANameIsNeitherThatOfAPersistentVolumeNorOfACreateVolume) {
  const std::string name = PoolNameOfInline(kInlineTestHandle);
  EXPECT_NE(name.find(':'), std::string::npos);
  EXPECT_NE(name, PoolNameOfCsi(kInlineTestHandle));
  EXPECT_NE(name, PoolNameOfCsi(name));
  PoolVolumeRecord record;
  record.name = name;
  EXPECT_EQ(InlineHandleOf(record), kInlineTestHandle);
}

TEST(CsiInlineWish, OnlyWhatAKubeletDrawsIsAHandle) {
  EXPECT_TRUE(IsInlineHandle(kInlineTestHandle));
  for (const std::string& text :
       {std::string("csi-"), std::string("csi-abc"), "csi-" + std::string(64, 'A'),
        "csi-" + std::string(65, 'a'), std::string("v-3fa91c02-0123456789abcdef01234567"),
        std::string(68, 'a'), std::string()}) {
    EXPECT_FALSE(IsInlineHandle(text)) << text;
  }
}

// The attributes of a PersistentVolume reach the driver as they are.
TEST(CsiInlineWish, AnotherIdOrAStagingPathIsAForgedMark) {
  auto request = InlineTestRequest();
  request.set_volume_id("v-3fa91c02-0123456789abcdef01234567");
  EXPECT_THAT(InlineTestRefusal(request), HasSubstr("no PersistentVolume may have it"));
  request = InlineTestRequest();
  request.set_staging_target_path("/var/lib/kubelet/plugins/x");
  EXPECT_THAT(InlineTestRefusal(request), HasSubstr("no PersistentVolume may have it"));
}

TEST(CsiInlineWish, WhatAPodMayNotSayOrSaysWrongIsRefusedByItsName) {
  for (const char* key :
       {"overcommit", "quota", "snapshots", "nonsense", "directIO", "csi.storage.k8s.io/fstype"}) {
    EXPECT_NE(InlineTestRefusal(InlineTestRequest({{key, "true"}})), "") << key;
  }
  EXPECT_THAT(InlineTestRefusal(InlineTestRequest({{"overcommit", "true"}})),
              HasSubstr("overcommit"));
  for (const char* size : {"", "0", "-1Gi", "much", "1 Gi"}) {
    EXPECT_THAT(InlineTestRefusal(InlineTestRequest({{"size", size}})), HasSubstr("no size"))
        << size;
  }
  CsiCapabilityWish block;
  block.is_block = true;
  EXPECT_THAT(InlineTestRefusal(InlineTestRequest(), block), HasSubstr("no block volume"));
}

TEST(CsiInlineWish, AUidOfAPodThatIsAPathIsRefused) {
  for (const char* uid : {"../../etc", "a/b", "."}) {
    EXPECT_THAT(InlineTestRefusal(InlineTestRequest({{"csi.storage.k8s.io/pod.uid", uid}})),
                HasSubstr("is no uid"))
        << uid;
  }
}

TEST(CsiInlineWish, ARequestWithoutItsPodNamesTheFieldOfTheCsiDriver) {
  for (const char* key : {"csi.storage.k8s.io/pod.name", "csi.storage.k8s.io/pod.namespace",
                          "csi.storage.k8s.io/pod.uid"}) {
    auto request = InlineTestRequest();
    request.mutable_volume_context()->erase(key);
    EXPECT_THAT(InlineTestRefusal(request), HasSubstr("podInfoOnMount")) << key;
  }
}

}  // namespace
}  // namespace volumed
