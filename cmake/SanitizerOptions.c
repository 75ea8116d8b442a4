// Defaults of AddressSanitizer for programs that share containers with an
// uninstrumented libLLVM; ASAN_OPTIONS overrides them.
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  // LLVM's allocators poison what our code inlines and never unpoison it on
  // LLVM's side.
  return "allow_user_poisoning=0:detect_container_overflow=0";
}
