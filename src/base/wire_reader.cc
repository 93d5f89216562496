#include "base/wire_reader.h"

#include <google/protobuf/io/coded_stream.h>

#include "base/printable_text.h"

namespace volumed {

using google::protobuf::io::CodedInputStream;

namespace wire {
namespace {

// The types of a field, in the low bits of its tag. Groups are of the past, but passed over.
enum : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kGroup = 3,
  kGroupEnd = 4,
  kFixed32 = 5
};

uint32_t NumberOf(uint32_t tag) { return tag >> 3; }

}  // namespace

// CodedInputStream::ReadTag takes a tag of more than five bytes; protobuf's own parsers do not.
uint32_t WireInput::ReadTag() {
  if (AtLimit()) return 0;
  constexpr int kMostBytes = 5;
  const int before = stream_.CurrentPosition();
  uint64_t tag = 0;
  const bool is_read =
      stream_.ReadVarint64(&tag) && stream_.CurrentPosition() - before <= kMostBytes;
  is_malformed_ = !is_read || static_cast<uint32_t>(tag) == 0;
  return is_malformed_ ? 0 : static_cast<uint32_t>(tag);
}

bool WireInput::ReadVarint(uint64_t& value) { return stream_.ReadVarint64(&value); }

bool WireInput::ReadBytes(std::string& bytes) {
  int size = 0;
  return stream_.ReadVarintSizeAsInt(&size) && size <= stream_.BytesUntilLimit() &&
         stream_.ReadString(&bytes, size);
}

bool WireInput::AtLimit() const { return stream_.BytesUntilLimit() <= 0; }

bool WireInput::EnterMessage() { return stream_.IncrementRecursionDepth(); }

void WireInput::LeaveMessage() { stream_.DecrementRecursionDepth(); }

bool WireInput::Enter(int& limit) {
  int size = 0;
  if (!stream_.ReadVarintSizeAsInt(&size) || size > stream_.BytesUntilLimit()) return false;
  limit = stream_.PushLimit(size);
  return true;
}

bool WireInput::Leave(int limit) {
  const bool at_end = AtLimit();
  stream_.PopLimit(limit);
  return at_end;
}

bool WireInput::Skip(uint32_t tag) {
  if (NumberOf(tag) == 0) return false;
  uint64_t number = 0;
  int size = 0;
  switch (tag & 7) {
    case kVarint:
      return stream_.ReadVarint64(&number);
    case kFixed64:
      return stream_.ReadLittleEndian64(&number);
    case kDelimited:
      return stream_.ReadVarintSizeAsInt(&size) && stream_.Skip(size);
    case kGroup: {
      if (!stream_.IncrementRecursionDepth()) return false;
      const bool skipped = SkipGroup(NumberOf(tag));
      stream_.DecrementRecursionDepth();
      return skipped;
    }
    case kFixed32:
      return stream_.Skip(sizeof(uint32_t));
    default:  // the end of a group that did not begin, and types that there are not
      return false;
  }
}

bool WireInput::SkipGroup(uint32_t number) {
  while (const uint32_t tag = ReadTag()) {
    if ((tag & 7) == kGroupEnd) return NumberOf(tag) == number;
    if (!Skip(tag)) return false;
  }
  return false;
}

bool IsUtf8(std::string_view text) { return volumed::IsUtf8(text); }

// Its text is for people, and what sent it may be out of order.
Error WireReader::ToError(const ErrorMessage& message) {
  return Error::FromParts(static_cast<Code>(message.code),
                          message.maybe_applied ? Outcome::kMaybeApplied : Outcome::kNotApplied,
                          message.sys_errno, PrintableText(message.message, "\t\n"));
}

WireOutcome DecodeBytes(std::string_view bytes, ReadFrom read, void* value) {
  const auto size = static_cast<int>(bytes.size());
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  stream.PushLimit(size);
  WireInput input(stream);
  if (!read(input, value)) return WireOutcome::kMalformed;
  return input.incomplete() ? WireOutcome::kIncomplete : WireOutcome::kRead;
}

}  // namespace wire
}  // namespace volumed
