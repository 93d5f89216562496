// EncodeWire: a value as the bytes of the protobuf message that base/wire_fields.h says it is. The
// same value gives the same bytes, also if it holds a map.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/wire_fields.h"

namespace volumed {
namespace wire {

using google::protobuf::io::CodedOutputStream;

// Visits the fields of a message and gives their bytes to a Sink. A Sink takes varints and bytes:
// one counts them, one writes them, so that a length can be written before what it is of.
template <typename Sink>
class WireWriter;

// How many bytes the message takes, without a tag and length of its own.
template <typename T>
size_t SizeOf(const T& message);

// Takes what a WireWriter writes and counts it, and keeps nothing.
class SizeSink {
 public:
  // Each of the three counts what ArraySink would write.
  void Varint(uint64_t value) { size_ += CodedOutputStream::VarintSize64(value); }
  void Bytes(const std::string& bytes) { size_ += bytes.size(); }
  template <typename T>
  void Message(const T& /*message*/, size_t size) {
    size_ += size;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

// Writes it, from `to` on. REQUIRES: the place at `to` is as large as what is written.
class ArraySink {
 public:
  explicit ArraySink(uint8_t* to) : to_(to) {}
  void Varint(uint64_t value) { to_ = CodedOutputStream::WriteVarint64ToArray(value, to_); }
  void Bytes(const std::string& bytes) {
    to_ = CodedOutputStream::WriteRawToArray(bytes.data(), static_cast<int>(bytes.size()), to_);
  }
  // Writes the fields of the message, without a tag and a length. The size is what SizeOf() says.
  template <typename T>
  void Message(const T& message, size_t size);

 private:
  uint8_t* to_;
};

template <typename Sink>
class WireWriter {
 public:
  // The sink outlives the writer.
  explicit WireWriter(Sink& sink) : sink_(sink) {}

  // Writes a member as base/wire_fields.h says for its type.
  template <typename T>
  void operator()(uint32_t number, const T& value) {
    if constexpr (kIsVarint<T>) {
      if (VarintOf(value) != 0) Field(number, value);
    } else if constexpr (kIsBytes<T>) {
      if (!BytesOf(value).empty()) Field(number, value);
    } else if constexpr (kIs<std::optional, T>) {
      if (value) Field(number, *value);
    } else if constexpr (kIs<std::vector, T>) {
      List(number, value);
    } else if constexpr (kIs<std::map, T>) {
      for (const auto& [key, element] : value) Entry(number, key, element);
    } else {
      Field(number, value);
    }
  }

  // The same: what is no text is written as it is, and the reader refuses the message.
  template <typename T>
  void Text(uint32_t number, const T& value) {
    (*this)(number, value);
  }
  template <typename T>
  void If(uint32_t number, const T& message, bool condition) {
    if (condition) Field(number, message);
  }
  template <typename T>
  void OptionalList(uint32_t is_set, uint32_t number, const std::optional<std::vector<T>>& list) {
    (*this)(is_set, list.has_value());
    if (list) List(number, *list);
  }
  template <typename... Kinds>
  void OneOf(const std::variant<Kinds...>& value) {
    std::visit([this](const auto& kind) { this->Field(kind.kWireNumber, kind); }, value);
  }
  // Of an error code, outcome, errno and message are written, and not what it is about.
  template <typename Variant>
  void OneOf(const Result<Variant>& result, uint32_t error_number) {
    if (result.ok()) return OneOf(*result);
    const Error& error = result.error();
    Field(error_number, ErrorMessage{static_cast<int32_t>(error.code()), error.maybe_applied(),
                                     error.sys_errno(), error.message()});
  }
  template <typename T>
  void NotSent(const T& /*member*/) {}

 private:
  template <typename T>
  static uint64_t VarintOf(const T& value) {
    if constexpr (kIsDuration<T>) {
      return static_cast<uint64_t>(int64_t{value.count()});
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<uint64_t>(static_cast<uint32_t>(value));
    } else {
      return static_cast<uint64_t>(value);  // a negative one as the ten bytes of an int64
    }
  }

  // Written whatever it holds.
  template <typename T>
  void Field(uint32_t number, const T& value) {
    if constexpr (kIsVarint<T>) {
      sink_.Varint(Tag(number, WireType::kVarint));
      sink_.Varint(VarintOf(value));
    } else {
      sink_.Varint(Tag(number, WireType::kLengthDelimited));
      if constexpr (kIsBytes<T>) {
        sink_.Varint(BytesOf(value).size());
        sink_.Bytes(BytesOf(value));
      } else if constexpr (kIs<std::vector, T>) {
        Message(ListMessage<const T>{value});
      } else if constexpr (kIs<std::variant, T>) {
        Message(OneOfMessage<const T>{value});
      } else {
        Message(value);
      }
    }
  }

  template <typename T>
  void Message(const T& message) {
    const size_t size = SizeOf(message);
    sink_.Varint(size);
    sink_.Message(message, size);
  }

  // Numbers are packed into one field; of anything else each element is a field.
  template <typename T>
  void List(uint32_t number, const std::vector<T>& list) {
    if constexpr (kIsVarint<T>) {
      if (list.empty()) return;
      SizeSink packed;
      for (const T& element : list) packed.Varint(VarintOf(element));
      sink_.Varint(Tag(number, WireType::kLengthDelimited));
      sink_.Varint(packed.size());
      for (const T& element : list) sink_.Varint(VarintOf(element));
    } else {
      for (const T& element : list) Field(number, element);
    }
  }

  // Key and value of an entry are written even if they are zero.
  template <typename Key, typename Value>
  void Entry(uint32_t number, const Key& key, const Value& value) {
    const auto fields = [&key, &value](auto& writer) {
      writer.Field(1, key);
      writer.Field(2, value);
    };
    SizeSink size;
    WireWriter<SizeSink> sizer(size);
    fields(sizer);
    sink_.Varint(Tag(number, WireType::kLengthDelimited));
    sink_.Varint(size.size());
    fields(*this);
  }

  template <typename Other>
  friend class WireWriter;

  Sink& sink_;
};

template <typename T>
size_t SizeOf(const T& message) {
  SizeSink sink;
  WireWriter<SizeSink> writer(sink);
  WireFieldsOf<T>::WireFields(writer, message);
  return sink.size();
}

template <typename T>
void ArraySink::Message(const T& message, size_t /*size*/) {
  WireWriter<ArraySink> writer(*this);
  WireFieldsOf<T>::WireFields(writer, message);
}

}  // namespace wire

// Threads: any. Blocks: never. There is no error: text that is no UTF-8 is written as it is, and
// the reader refuses it. A field is measured once for each message around it, so deep nesting costs
// more than its size. REQUIRES: fewer than 2 GiB.
template <typename T>
std::string EncodeWire(const T& value) {
  std::string bytes(wire::SizeOf(value), '\0');
  wire::ArraySink sink(reinterpret_cast<uint8_t*>(bytes.data()));
  sink.Message(value, bytes.size());
  return bytes;
}

}  // namespace volumed
