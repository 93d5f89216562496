// ContentKey: a key by which the agent recognises what it has published in a volume, without
// keeping the content: it keeps a MAC of it, with a key that nobody else has. With a plain hash, a
// reader of the records could try out short passwords. Source: RFC 2104 (HMAC), FIPS 180-4
// (SHA-256).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secret.h"

struct evp_mac_ctx_st;  // OpenSSL's EVP_MAC_CTX; its headers stay in the .cc

namespace volumed {

// Immutable. Threads: any. Blocks: only Open, on the filesystem.
class ContentKey {
 public:
  // Reads the key from the file content-key (0600) in `directory`, which is made with the mode 0700
  // if it is missing. A key that is missing, has not 32 bytes, or lies in a file that others may
  // read or own, is made again; the content of all volumes then counts as unknown, and each is set
  // up again.
  // Errors, not applied: those of the filesystem.
  static Result<std::shared_ptr<const ContentKey>> Open(const std::string& directory);
  // Takes the key as it is in the file. REQUIRES: 32 bytes.
  explicit ContentKey(const Secret<std::string>& key);
  ~ContentKey();
  ContentKey(const ContentKey&) = delete;
  ContentKey& operator=(const ContentKey&) = delete;

  // The MAC of several texts, each with its length before it, so that their borders count. One
  // thread makes, fills and ends a Mac.
  class Mac {
   public:
    void Add(std::string_view text);
    void Add(uint64_t number);
    // Returns 32 bytes; empty if OpenSSL has failed. REQUIRES: it is called once.
    std::string End();

   private:
    friend class ContentKey;
    struct Free {
      void operator()(evp_mac_ctx_st* context) const;
    };
    std::unique_ptr<evp_mac_ctx_st, Free> context_;
    bool failed_ = false;
  };
  // A Mac without anything in it. Two with the same key, filled alike, end in the same bytes, on
  // another start of the agent too.
  Mac Begin() const;

 private:
  std::unique_ptr<evp_mac_ctx_st, Mac::Free> keyed_;  // each Mac begins as a copy
};

}  // namespace volumed
