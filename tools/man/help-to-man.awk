# Turns a program's --help into a man page.
#
#   fp8-run --help | awk -v name=fp8-run -v version=0.1.0 -v what="..." [-v only=REGEX] -f help-to-man.awk
#
# what: the text of the NAME section. only: which options to list, for programs
# with hundreds of LLVM's own.

function escaped(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  # A dot or a quote in the first column would be a request.
  if (text ~ /^[.']/) text = "\\&" text
  return text
}

BEGIN {
  printf ".TH %s 1 \"\" \"fp8 %s\" \"fp8\"\n", toupper(name), version
  printf ".SH NAME\n%s \\- %s\n", name, escaped(what)
}

/^USAGE:/ {
  synopsis = $0
  sub(/^USAGE: /, "", synopsis)
  next
}
/^OPTIONS:/ { isOptions = 1; next }

# The text before the options: sentences, and lines of examples.
!isOptions {
  sub(/^OVERVIEW: /, "")
  if ($0 ~ /^Available Dialects/ || $0 ~ /^ *$/) next
  if ($0 ~ /^ /) {
    sub(/^ +/, "")
    examples = examples ".PP\n.B " escaped($0) "\n"
  } else {
    about = about escaped($0) "\n"
  }
  next
}

/^ +--?[A-Za-z0-9]/ {
  match($0, /^ +/)
  depth = RLENGTH
  split($1, parts, "=")
  # Options of a pass are indented more than the pass.
  isListed = depth > 6 ? isListed : (only == "" || parts[1] ~ only)
  if (!isListed) next
  at = match($0, / - /)
  head = substr($0, 1, at - 1)
  text = substr($0, at + 3)
  gsub(/^ +| +$/, "", head)
  gsub(/^ +/, "", text)
  if (depth > 6) options = options ".RS\n"
  options = options ".TP\n.B " escaped(head) "\n" escaped(text) "\n"
  if (depth > 6) options = options ".RE\n"
  next
}

# The values of an option.
isListed && /^ +=/ {
  at = match($0, / +- +/)
  value = substr($0, 1, at - 1)
  gsub(/^ +=| +$/, "", value)
  options = options ".RS\n.TP\n.B " escaped(value) "\n" escaped(substr($0, at + RLENGTH)) "\n.RE\n"
}

END {
  printf ".SH SYNOPSIS\n.B %s\n", escaped(synopsis)
  printf ".SH DESCRIPTION\n%s%s", about, examples
  if (options != "") printf ".SH OPTIONS\n%s", options
  if (only != "") printf ".PP\nLLVM and MLIR have hundreds of options more: see\n.BR %s .\n", escaped(name " --help")
  others = ""
  count = split("fp8-opt fp8-run fp8-train fp8-reduce fp8-lsp-server", names, " ")
  for (i = 1; i <= count; ++i)
    if (names[i] != name) others = others (others == "" ? "" : ",\n") ".BR " escaped(names[i]) " (1)"
  printf ".SH SEE ALSO\n%s\n", others
}
