// Every request and answer, from their declarations: each is what it was on the wire, keeps all its
// fields, and declares all its members.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "fakes/wire_declaration.h"
#include "os/worker_codec.h"
#include "places.h"

namespace volumed {
namespace {

std::string Hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 0xf]};
  }
  return text;
}

std::string FromHex(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

std::string Encode(const AnyRequest& request) {
  CallOptions options;
  options.progress = [](int64_t) {};
  return EncodeRequest(request, options, Duration(77));
}
std::string Encode(const AnyAnswer& answer) { return EncodeAnswer(Result<AnyAnswer>(answer)); }

// With a descriptor beside it, as a lock must have.
Result<AnyAnswer> DecodedAnswer(const std::string& bytes) {
  return DecodeAnswer(bytes, Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
}

Result<AnyRequest> DecodedRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(WorkerRequest decoded, DecodeRequest(bytes));
  return std::move(decoded.request);
}

// One of each kind, all fields set. Those of another name stand for what is not everywhere alike.
template <typename... Kinds>
std::vector<std::variant<Kinds...>> All(std::type_identity<std::variant<Kinds...>>) {
  return {std::variant<Kinds...>(Filled<Kinds>())...};
}
std::vector<AnyRequest> AllRequests() { return All(std::type_identity<AnyRequest>()); }
std::vector<AnyAnswer> AllAnswers() { return All(std::type_identity<AnyAnswer>()); }

std::map<std::string, std::string> AllMessages() {
  std::map<std::string, std::string> messages;
  for (const AnyRequest& request : AllRequests()) {
    messages["request " + std::string(RequestName(request))] = Hex(Encode(request));
  }
  for (const AnyAnswer& answer : AllAnswers()) {
    messages["answer " + std::to_string(answer.index())] = Hex(Encode(answer));
  }
  // A field that came later changes nothing where it is not set.
  messages["request WriteFile unsynced"] = messages["request WriteFile"];
  auto synced = Filled<WriteFile>();
  synced.unsynced = false;
  messages["request WriteFile"] = Hex(Encode(AnyRequest(synced)));
  messages["request ConfigureLoop with its read-ahead"] = messages["request ConfigureLoop"];
  auto as_it_reads = Filled<ConfigureLoop>();
  as_it_reads.read_ahead_kib.reset();
  messages["request ConfigureLoop"] = Hex(Encode(AnyRequest(as_it_reads)));
  messages["request SetTreeQuota of a project alone"] = messages["request SetTreeQuota"];
  auto of_directory = Filled<SetTreeQuota>();
  of_directory.limit_alone = false;
  messages["request SetTreeQuota"] = Hex(Encode(AnyRequest(of_directory)));
  const auto asked_later = [&messages](const auto& before, const std::string& what) {
    const std::string name = "request " + std::string(RequestName(before));
    messages[name + what] = messages[name];
    messages[name] = Hex(Encode(AnyRequest(before)));
  };
  auto directory = Filled<RemoveDirectory>();
  directory.synced = false;
  asked_later(directory, " synced");
  auto skeleton = Filled<RemoveSkeleton>();
  skeleton.synced = false;
  asked_later(skeleton, " synced");
  auto uncounted = Filled<IdentifyDevice>();
  uncounted.count_writes = false;
  asked_later(uncounted, " with its writes");
  auto of_any_mount = Filled<BindMount>();
  of_any_mount.expected_part.reset();
  asked_later(of_any_mount, " of a part");
  auto unbounded = Filled<CopyTree>();
  unbounded.most_bytes = 0;
  asked_later(unbounded, " with a bound");
  const auto set_later = [&messages](const auto& before, const std::string& what) {
    const std::string name = "answer " + std::to_string(AnyAnswer(before).index());
    messages[name + what] = messages[name];
    messages[name] = Hex(Encode(AnyAnswer(before)));
  };
  auto on_one = Filled<DeviceProbe>();
  on_one.spans_devices = false;
  set_later(on_one, " with its parts");
  auto unwritten = Filled<IdentifiedDevice>();
  unwritten.writes.clear();
  set_later(unwritten, " with its writes");
  auto unsized = unwritten;
  unsized.block_bytes = 0;
  set_later(unsized, " with its block size");
  auto counted = Filled<AttachedLoop>();
  counted.device.writes.clear();
  set_later(counted, " with its device's writes");
  auto attached = counted;
  attached.device.block_bytes = 0;
  set_later(attached, " with its device's block size");
  auto nameless = unsized;
  nameless.node.clear();
  set_later(nameless, " with its node");
  auto unallocated = Filled<FileInfo>();
  unallocated.allocated_bytes = 0;
  set_later(unallocated, " with its allocation");
  auto batch = Filled<BatchAnswer>();
  for (BatchItemAnswer& item : batch.items) std::get<FileInfo>(*item.result).allocated_bytes = 0;
  // The fields of the second one count on from those of the first one, which had one less.
  auto& second = std::get<FileInfo>(*batch.items.at(1).result);
  for (uint32_t* number : {&second.mode, &second.uid, &second.gid}) --*number;
  for (uint64_t* number : {&second.device, &second.inode, &second.device_number}) --*number;
  --second.size_bytes;
  set_later(batch, " with their allocation");
  auto older = Filled<KernelFeatures>();
  older.grows_mounted_ext = older.fsopen = false;
  set_later(older, " with what images need");
  messages["answer error"] = Hex(EncodeAnswer(Result<AnyAnswer>(
      Error::FromParts(Code::kInternal, Outcome::kMaybeApplied, ENOSPC, "what failed"))));
  return messages;
}

// The file was made by what encoded them field by field; a line of it is never changed.
TEST(WorkerMessages, AreTheSameBytesAsEver) {
  const std::map<std::string, std::string> now = AllMessages();
  std::ifstream file(SourcePath("tests/unit/os/worker_messages.golden"));
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const size_t colon = line.find(": ");
    const std::string name = line.substr(0, colon);
    ASSERT_EQ(now.count(name), 1u) << name;
    EXPECT_EQ(now.at(name), line.substr(colon + 2)) << name;
  }
  EXPECT_GE(lines, 73);
}

TEST(WorkerMessages, KeepEveryField) {
  for (const AnyRequest& request : AllRequests()) {
    const auto decoded = DecodedRequest(Encode(request));
    ASSERT_TRUE(decoded.ok()) << RequestName(request);
    EXPECT_EQ(decoded->index(), request.index());
    EXPECT_EQ(Hex(Encode(*decoded)), Hex(Encode(request))) << RequestName(request);
  }
  for (const AnyAnswer& answer : AllAnswers()) {
    const auto decoded = DecodedAnswer(Encode(answer));
    ASSERT_TRUE(decoded.ok()) << answer.index();
    EXPECT_EQ(decoded->index(), answer.index());
    EXPECT_EQ(Hex(Encode(*decoded)), Hex(Encode(answer))) << answer.index();
  }
}

// Wherever a message is cut off, or one bit of it is another, it is read as something or refused.
TEST(WorkerMessages, NoneIsReadBehindItsEnd) {
  for (const auto& [name, hex] : AllMessages()) {
    const std::string bytes = FromHex(hex);
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string other = bytes;
      other[at] = static_cast<char>(other[at] ^ (1 << at % 8));
      for (const std::string& changed : {bytes.substr(0, at), other}) {
        if (name.starts_with("request")) {
          if (const auto decoded = DecodedRequest(changed); decoded.ok()) Encode(*decoded);
        } else if (const auto decoded = DecodedAnswer(changed); decoded.ok()) {
          Encode(*decoded);
        }
      }
    }
  }
}

template <typename Kind>
void ExpectKindDeclared() {
  EXPECT_EQ(WireDeclaration::ProblemOf<Kind>(), "") << Kind::kWireNumber;
}
template <typename... Kinds>
void ExpectDeclared(std::type_identity<std::variant<Kinds...>>) {
  (ExpectKindDeclared<Kinds>(), ...);
}

TEST(WorkerMessages, DeclareEveryMemberOnce) {
  ExpectDeclared(std::type_identity<AnyRequest>());
  ExpectDeclared(std::type_identity<AnyAnswer>());
  EXPECT_EQ(WireDeclaration::ProblemOf<BatchItem>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<BatchItemAnswer>(), "");
  EXPECT_EQ(WireDeclaration::ProblemOf<WorkerRequest>(), "");
}

struct Forgetful {
  int kept = 0;
  int forgotten = 0;
  static void WireFields(auto& v, auto& m) { v(1, m.kept); }
};
struct Confused {
  int first = 0;
  int second = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.first);
    v(1, m.second);
  }
};
struct Repeating {
  int first = 0;
  int second = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.first);
    v(2, m.first);
  }
};

TEST(WorkerMessages, AMemberThatIsForgottenOrDeclaredTwiceIsNoticed) {
  EXPECT_EQ(WireDeclaration::ProblemOf<Forgetful>(), "1 of 2 members are declared");
  EXPECT_NE(WireDeclaration::ProblemOf<Confused>(), "");
  EXPECT_NE(WireDeclaration::ProblemOf<Repeating>(), "");
}

}  // namespace
}  // namespace volumed
