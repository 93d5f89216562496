// Messages and texts without their secrets.
#include "csi/rpc/csi_redact.h"

#include <gtest/gtest.h>

#include "base/printable_text.h"
#include "csi.pb.h"
#include "unit/csi/canary_messages.h"

namespace volumed {
namespace {

constexpr size_t kAll = 1024 * 1024;

::csi::v1::NodeStageVolumeRequest WithSecrets(const std::vector<std::string>& values) {
  ::csi::v1::NodeStageVolumeRequest request;
  for (size_t i = 0; i < values.size(); ++i) {
    (*request.mutable_secrets())["key-" + std::to_string(i)] = values[i];
  }
  return request;
}

std::string Removed(const std::vector<std::string>& values, std::string_view text) {
  return CsiSecrets(WithSecrets(values)).RemovedFrom(text, kAll);
}

TEST(CsiRedactTest, NoMarkedFieldOfAnyMessageIsInItsText) {
  size_t canaries = 0;
  const google::protobuf::FileDescriptor& file = *::csi::v1::ProbeRequest::descriptor()->file();
  for (int i = 0; i < file.message_type_count(); ++i) {
    const CanaryMessage made = CanaryMessageOf(*file.message_type(i));
    const std::string text = CsiStrippedText(*made.message, kAll);
    EXPECT_EQ(text.find("CANARY"), std::string::npos) << text;
    canaries += made.canaries.size();
  }
  // One for each marked field of the proto at least.
  EXPECT_GT(canaries, 15u);
}

TEST(CsiRedactTest, NoMarkedFieldOfAnyRequestIsLeftInWhatTheDriverSays) {
  for (const CsiMethod& method : CsiMethods()) {
    const CanaryMessage made = CanaryMessageOf(*method.request);
    const CsiSecrets secrets(*made.message);
    for (const std::string& canary : made.canaries) {
      for (const std::string& spelling : CanarySpellings(canary)) {
        EXPECT_EQ(secrets.RemovedFrom("failed: <" + spelling + ">", kAll),
                  "failed: <***stripped***>")
            << method.name << ": " << spelling;
      }
    }
  }
}

TEST(CsiRedactTest, TheKeysOfSecretsAndAllElseAreShown) {
  ::csi::v1::NodeStageVolumeRequest request;
  request.set_volume_id("vol-1");
  (*request.mutable_secrets())["user"] = "admin";
  (*request.mutable_secrets())["password"] = "hunter2";
  (*request.mutable_volume_context())["server"] = "nas-1";
  request.mutable_volume_capability()->mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  EXPECT_EQ(CsiStrippedText(request, kAll),
            "{\"volume_id\":\"vol-1\","
            "\"volume_capability\":{\"access_mode\":{\"mode\":\"SINGLE_NODE_WRITER\"}},"
            "\"secrets\":{\"password\":\"***stripped***\",\"user\":\"***stripped***\"},"
            "\"volume_context\":{\"server\":\"nas-1\"}}");
}

TEST(CsiRedactTest, AnEnumThatTheProtoDoesNotKnowIsShownAsNumber) {
  ::csi::v1::VolumeCapability::AccessMode mode;
  mode.set_mode(static_cast<::csi::v1::VolumeCapability::AccessMode::Mode>(99));
  EXPECT_EQ(CsiStrippedText(mode, kAll), "{\"mode\":99}");
}

TEST(CsiRedactTest, OfMountFlagsOnlyWordsAndKeysAreShown) {
  ::csi::v1::VolumeCapability capability;
  for (const char* flag :
       {"ro", "vers=4.1", "password=hunter2", "hunter2, with a blank", "a,password=x"}) {
    capability.mutable_mount()->add_mount_flags(flag);
  }
  EXPECT_EQ(CsiStrippedText(capability, kAll),
            "{\"mount\":{\"mount_flags\":[\"ro\",\"vers=***stripped***\","
            "\"password=***stripped***\",\"***stripped***\",\"***stripped***\"]}}");
}

TEST(CsiRedactTest, AMountFlagIsHiddenInAnErrorOnlyIfItsKeySoundsSecret) {
  ::csi::v1::NodeStageVolumeRequest request;
  auto& mount = *request.mutable_volume_capability()->mutable_mount();
  mount.add_mount_flags("addr=10.0.0.5");
  mount.add_mount_flags("ro,PassWord=hunter2");
  EXPECT_EQ(CsiSecrets(request).RemovedFrom("10.0.0.5 refused hunter2", kAll),
            "10.0.0.5 refused ***stripped***");
}

TEST(CsiRedactTest, ServiceAccountTokensInTheVolumeContextAreSecrets) {
  const std::string token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMyJ9.payload.signature";
  ::csi::v1::NodePublishVolumeRequest request;
  (*request.mutable_volume_context())["csi.storage.k8s.io/serviceAccount.tokens"] =
      R"({"vault":{"token":")" + token + R"(","expirationTimestamp":"2026-01-01T00:00:00Z"}})";
  EXPECT_EQ(CsiStrippedText(request, kAll).find("eyJ"), std::string::npos);
  EXPECT_EQ(CsiSecrets(request).RemovedFrom("login with " + token + " failed", kAll),
            "login with ***stripped*** failed");
}

TEST(CsiRedactTest, OfOverlappingSecretsNothingIsLeftOver) {
  EXPECT_EQ(Removed({"abcdef", "defghi"}, "x abcdefghi y"), "x ***stripped*** y");
  EXPECT_EQ(Removed({"secret", "secret-and-more"}, "secret-and-more"), "***stripped***");
  EXPECT_EQ(Removed({"aaaa"}, "aaaaaa b"), "***stripped*** b");
}

TEST(CsiRedactTest, ShortSecretsAreNotLookedFor) {
  EXPECT_EQ(Removed({"", "1", "yes"}, "1 yes"), "1 yes");
  EXPECT_EQ(Removed({"yes!"}, "1 yes!"), "1 ***stripped***");
}

TEST(CsiRedactTest, ASecretIsFoundAsALogWritesItAndLineByLine) {
  EXPECT_EQ(Removed({"pa\"ss\\word"}, R"(login "pa\"ss\\word" failed)"),
            "login \"***stripped***\" failed");
  EXPECT_EQ(Removed({"line-one\nline-two\n"}, "bad line-two here"), "bad ***stripped*** here");
  EXPECT_EQ(Removed({"trailing\n"}, "bad trailing, really"), "bad ***stripped***, really");
}

TEST(CsiRedactTest, AValueWithoutTheBlanksAroundItWasShown) {
  EXPECT_EQ(Removed({" padded-Secret-77 "}, "bad padded-Secret-77."), "bad ***stripped***.");
  EXPECT_EQ(Removed({"\tline-one\nline-two \r\n"}, "bad line-one\\nline-two."),
            "bad ***stripped***.");
  EXPECT_EQ(Removed({"  no  "}, "no, no"), "no, no");
}

TEST(CsiRedactTest, ASecretOfAnyBytesIsFoundBeforeTheTextIsMadePrintable) {
  EXPECT_EQ(Removed({"\xff\xfe\x01\x02"}, "key \xff\xfe\x01\x02 bad\x07"),
            "key ***stripped*** bad\\x07");
}

TEST(CsiRedactTest, ASecretOfAnEarlierCallIsNotInWhatTheDriverSaysLater) {
  const auto memory = std::make_shared<CsiSecretMemory>();
  (void)CsiSecrets(WithSecrets({"hunter2&x"}), memory);
  ::csi::v1::NodeUnstageVolumeRequest later;
  later.set_volume_id("vol-1");
  EXPECT_EQ(CsiSecrets(later, memory).RemovedFrom(R"(umount //u:hunter2\u0026x@nas failed)", kAll),
            "umount //u:***stripped***@nas failed");
  EXPECT_EQ(CsiSecrets(memory).RemovedFrom("hunter2%26x", kAll), "***stripped***");
  EXPECT_EQ(CsiSecrets(later).RemovedFrom("hunter2&x", kAll), "hunter2&x");
}

TEST(CsiRedactTest, ASecretInATextOfAMessageIsFoundBeforeThatTextIsCut) {
  const std::string token(200, 't');
  ::csi::v1::CreateVolumeResponse answer;
  answer.mutable_volume()->set_volume_id(std::string(100, 'x') + token);
  (*answer.mutable_volume()->mutable_volume_context())["login=hunter2"] = "u:hunter2\n@nas";
  EXPECT_EQ(CsiSecrets(WithSecrets({token, "hunter2\n@nas", "hunter2"})).StrippedText(answer, kAll),
            "{\"volume\":{\"volume_id\":\"" + std::string(100, 'x') +
                "***stripped***\",\"volume_context\":"
                "{\"login=***stripped***\":\"u:***stripped***\"}}}");
}

TEST(CsiRedactTest, OfMegabytesOnlyTheBeginningIsSearchedAndShown) {
  const CsiSecrets secrets(WithSecrets({"hunter2"}));
  const std::string text = secrets.RemovedFrom("hunter2 " + std::string(8'000'000, 'x'), 100);
  EXPECT_EQ(text, "***stripped*** " + std::string(82, 'x') + "...");
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "hunter2";
  EXPECT_EQ(secrets.RemovedFrom(many, 100).find("hunt"), std::string::npos);
}

// It ended behind what was searched, and its beginning was shown.
TEST(CsiRedactTest, OfASecretThatIsLongerThanWhatIsSearchedTheBeginningWasShown) {
  std::string keystore;
  for (int i = 0; i < 4'000; ++i) keystore += std::to_string(i) + ",";
  const CsiSecrets secrets(WithSecrets({keystore, "hunter2"}));
  EXPECT_EQ(secrets.RemovedFrom("hunter2: bad " + keystore + " here", 100),
            "***stripped***: bad ***stripped***");
  std::string hex;
  for (const char c : keystore.substr(0, 12'000)) hex += c == ',' ? "2c" : std::string("3") + c;
  EXPECT_EQ(CsiSecrets(WithSecrets({keystore.substr(0, 12'000)})).RemovedFrom("bad " + hex, 100),
            "bad ***stripped***");
}

TEST(CsiRedactTest, NothingIsShownOfATextThatWouldTakeTooLongToSearch) {
  const std::string quotes(3'000, '\'');
  const std::string said = "bad password " + std::string(7'000, '\'');
  const std::string note = "[a text of 7013 bytes that may contain a secret]";
  EXPECT_EQ(Removed({quotes}, said), note);
  const auto memory = std::make_shared<CsiSecretMemory>();
  (void)CsiSecrets(WithSecrets({quotes, "hunter2"}), memory);
  const CsiSecrets later(memory);
  EXPECT_EQ(later.RemovedFrom(said, kAll), note);
  EXPECT_EQ(later.RemovedFrom("login hunter2 isn't right", kAll),
            "login ***stripped*** isn't right");
  // All texts of a message are one search.
  ::csi::v1::CreateVolumeResponse answer;
  (*answer.mutable_volume()->mutable_volume_context())["a"] = said;
  (*answer.mutable_volume()->mutable_volume_context())["b"] = "hunter2";
  const std::string shown = later.StrippedText(answer, kAll);
  EXPECT_EQ(shown.find("hunter2"), std::string::npos) << shown;
  EXPECT_NE(shown.find("\"a\":\"" + note), std::string::npos) << shown;
  EXPECT_NE(shown.find("a text of 7 bytes"), std::string::npos) << shown;
}

TEST(CsiRedactTest, WhatIsWithheldIsInNoTextOfAMessageAndSaysUntilWhen) {
  const auto memory = std::make_shared<CsiSecretMemory>();
  memory->Withhold("it is known");
  const std::string note = "[withheld, as it may have a secret in it, until it is known]";
  const CsiSecrets secrets(memory);
  ::csi::v1::CreateVolumeResponse answer;
  answer.mutable_volume()->set_capacity_bytes(5);
  (*answer.mutable_volume()->mutable_volume_context())["login"] = "hunter2";
  EXPECT_EQ(
      secrets.StrippedText(answer, kAll),
      "{\"volume\":{\"capacity_bytes\":5,\"volume_context\":{\"" + note + "\":\"" + note + "\"}}}");
  ::csi::v1::CreateVolumeResponse shown = answer;
  secrets.RemoveFromTextsOf(shown);
  EXPECT_EQ(shown.volume().volume_context().at(note), note);
  EXPECT_EQ(shown.volume().volume_id(), "") << "nothing was said there";
  EXPECT_EQ(secrets.RemovedFromOurs("it was not sent", kAll), "it was not sent");
  memory->Withhold("");
  EXPECT_EQ(secrets.RemovedFrom("hunter3", kAll), "hunter3");
}

TEST(CsiRedactTest, AllTextsOfAnAnswerAreShownWithoutSecretsAndWholeOtherwise) {
  ::csi::v1::ListVolumesResponse answer;
  const std::string large(50'000, 'x');
  for (const char* id : {"vol-1", "vol-2"}) {
    auto& entry = *answer.add_entries();
    entry.mutable_volume()->set_volume_id(id);
    auto& context = *entry.mutable_volume()->mutable_volume_context();
    context["login"] = "u:hunter2@nas";
    context["of-hunter2"] = large;
    entry.mutable_status()->add_published_node_ids("node-hunter%32");
  }
  answer.set_next_token("\u20acuro");
  // A driver may have a secret that is a part of a character.
  CsiSecrets(WithSecrets({"hunter2",
                          "\xac"
                          "uro"}))
      .RemoveFromTextsOf(answer);
  ASSERT_EQ(answer.entries_size(), 2);
  for (const auto& entry : answer.entries()) {
    EXPECT_TRUE(entry.volume().volume_id().starts_with("vol-"));
    const auto& context = entry.volume().volume_context();
    ASSERT_EQ(context.size(), 2u);
    EXPECT_EQ(context.at("login"), "u:***stripped***@nas");
    EXPECT_EQ(context.at("of-***stripped***"), large);
    EXPECT_EQ(entry.status().published_node_ids(0), "node-***stripped***");
  }
  EXPECT_EQ(answer.next_token(), "\\xe2\\x82***stripped***");
}

TEST(CsiRedactTest, ASecretAtTheEndOfTheBoundIsNotCutOpen) {
  const CsiSecrets secrets(WithSecrets({"hunter2hunter2"}));
  for (size_t most = 0; most < 60; ++most) {
    const std::string text = secrets.RemovedFrom("0123456789 hunter2hunter2 0123456789", most);
    EXPECT_LE(text.size(), std::max<size_t>(most, 3));
    EXPECT_EQ(text.find("hunt"), std::string::npos) << text;
  }
}

TEST(CsiRedactTest, TextsAreBoundedAndPrintable) {
  ::csi::v1::NodeStageVolumeRequest request;
  request.set_volume_id("a\nb\"c" + std::string(5000, 'x'));
  for (int i = 0; i < 1000; ++i) {
    (*request.mutable_volume_context())["key-" + std::to_string(i)] = std::string(100, 'y');
  }
  const std::string text = CsiStrippedText(request, 2000);
  EXPECT_EQ(text.size(), 2000u);
  EXPECT_TRUE(text.ends_with("..."));
  EXPECT_TRUE(text.starts_with("{\"volume_id\":\"a\\\\x0ab\\\"cxxx")) << text.substr(0, 40);
  EXPECT_TRUE(IsUtf8(text));
}

TEST(CsiRedactTest, AnEmptyMessageIsEmptyBraces) {
  EXPECT_EQ(CsiStrippedText(::csi::v1::ProbeRequest(), kAll), "{}");
  EXPECT_EQ(CsiStrippedText(::csi::v1::ProbeRequest(), 1), "...");
}

}  // namespace
}  // namespace volumed
