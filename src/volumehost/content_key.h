// ContentKey: by which the agent knows again what it has published in a volume, without keeping the
// content: a MAC of it, with a key that nobody else has. A plain hash would let whoever reads the
// records try out short passwords. Source: RFC 2104 (HMAC), FIPS 180-4 (SHA-256).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secret.h"

struct evp_mac_ctx_st;  // OpenSSL's EVP_MAC_CTX; its headers stay in the .cc

namespace volumed {

// Immutable. Threads: any. Blocks: Open alone, on the filesystem.
class ContentKey {
 public:
  // The key in `directory` (made with mode 0700 if it is missing), as the file content-key (0600).
  // A key that is missing, too short, or readable for others is made anew: what was told by the
  // former one is then known of no volume, and each is set up again.
  // Errors, not applied: those of the filesystem.
  static Result<std::shared_ptr<const ContentKey>> Open(const std::string& directory);
  // As a file has it. REQUIRES: 32 bytes.
  explicit ContentKey(const Secret<std::string>& key);
  ~ContentKey();
  ContentKey(const ContentKey&) = delete;
  ContentKey& operator=(const ContentKey&) = delete;

  // Of several texts, each with its length before it, so that none can run into the next. One is
  // made, filled and ended by one thread.
  class Mac {
   public:
    void Add(std::string_view text);
    void Add(uint64_t number);
    // 32 bytes; empty if OpenSSL has failed. Once.
    std::string End();

   private:
    friend class ContentKey;
    struct Free {
      void operator()(evp_mac_ctx_st* context) const;
    };
    std::unique_ptr<evp_mac_ctx_st, Free> context_;
    bool failed_ = false;
  };
  Mac Begin() const;

 private:
  std::unique_ptr<evp_mac_ctx_st, Mac::Free> keyed_;  // what each Mac begins as
};

}  // namespace volumed
