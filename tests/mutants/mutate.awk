# SPDX-License-Identifier: Apache-2.0
# Finds the places of mutants; tests/mutants/list describes the format. Variables:
#   list      the list
#   sources   a file that names the sources, one a line
#   one, out  the name of a mutant: its source file goes to `out` with the mutant in it, and
#             the path of that file to stdout
# Without `one` it checks the whole list, and prints `name: file: why` for each defect. Then it
# needs, too:
#   programs  a file that names the test programs, one a line
#   texts     a file with the texts of their sources, among them the names of the cases, one a
#             line as `program/text`
BEGIN {
  status = 0
  read_list()
  while ((getline line < sources) > 0) paths[++path_count] = line
  if (one != "") make_one()
  else check_all()
  exit status
}

function complain(i, why) {
  print name[i] ": " (file[i] == "" ? list : file[i]) ": " why
  status = 1
}

# -- the list ---------------------------------------------------------------------------

function read_list(    line, key, text) {
  while ((getline line < list) > 0) {
    if (line ~ /^ *(#|$)/) continue
    key = text = line
    sub(/^ */, "", key); sub(/ .*/, "", key)
    sub(/^ *[a-z]+ ?/, "", text)
    if (key == "mutant") {
      name[++count] = text
    } else if (key == "in") {
      file[count] = within[count] = text
      sub(/ .*/, "", file[count])
      if (!sub(/^[^ ]+ +/, "", within[count])) within[count] = ""
    } else if (key == "from" || key == "drop") {
      if (count in op) twice[count] = key
      op[count] = key
      from[count] = text
    } else if (key == "to") {
      to[count] = text
    } else if (key == "new") {
      new[count] = " " text " "
    } else if (key == "by") {
      by[count, ++by_count[count]] = text
    } else {
      unknown[count] = key
    }
  }
}

# -- the sources ------------------------------------------------------------------------

function text_of(path,    line, all) {
  if (!(path in content)) {
    all = ""
    while ((getline line < path) > 0) all = all line "\n"
    close(path)
    content[path] = all
  }
  return content[path]
}

function is_lua(path) { return path ~ /\.lua$/ }

function note_function(path, fn, start, end) {
  places[path, fn]++
  fn_start[path, fn] = start
  fn_end[path, fn] = end
}

# Relies on the layout. In C a function's head begins in the first column, and its `{` and `}`
# are lines of their own there; in Lua its `end` stands below its beginning.
function index_functions(path,    lines, n, i, at, head, head_at, fn, indent, open) {
  if (path in indexed) return
  indexed[path] = 1
  n = split(text_of(path), lines, "\n")
  at = 1
  head = fn = ""
  open = 0
  for (i = 1; i <= n; i++) {
    if (is_lua(path)) {
      if (!open && match(lines[i], /^ *(local )?function [A-Za-z0-9_]+/)) {
        fn = substr(lines[i], 1, RLENGTH)
        sub(/.* /, "", fn)
        match(lines[i], /^ */)
        indent = substr(lines[i], 1, RLENGTH)
        head_at = at
        open = 1
        if (lines[i] ~ / end$/) {
          note_function(path, fn, head_at, at + length(lines[i]))
          open = 0
        }
      } else if (open && lines[i] == indent "end") {
        note_function(path, fn, head_at, at + length(lines[i]))
        open = 0
      }
    } else if (open) {
      if (lines[i] == "}") {
        note_function(path, fn, head_at, at)
        open = 0
      }
    } else if (lines[i] == "{" && head != "") {
      gsub(/__attribute__ *\(\([^)]*\)\)/, "", head)
      sub(/ *\(.*/, "", head)
      sub(/.*[^A-Za-z0-9_]/, "", head)
      fn = head
      head = ""
      open = 1
    } else if (lines[i] ~ /[;{]$/ || lines[i] !~ /^[A-Za-z_ \t]/) {
      head = ""
    } else if (lines[i] ~ /^[A-Za-z_]/ && head == "") {
      head = lines[i]
      head_at = at
    } else if (head != "") {
      head = head " " lines[i]
    }
    at += length(lines[i]) + 1
  }
}

# Sets in_path, region_at and region. Returns the error in the place, or "".
function find_place(i,    p, same, files, found) {
  files = found = 0
  for (p = 1; p <= path_count; p++) {
    same = paths[p] == file[i] ||
           substr(paths[p], length(paths[p]) - length(file[i])) == "/" file[i]
    if (!same) continue
    files++
    if (within[i] == "") {
      found++
      in_path = paths[p]
      region_at = 1
      region = text_of(in_path)
      continue
    }
    index_functions(paths[p])
    if (!((paths[p], within[i]) in places)) continue
    found += places[paths[p], within[i]]
    in_path = paths[p]
    region_at = fn_start[in_path, within[i]]
    region = substr(text_of(in_path), region_at, fn_end[in_path, within[i]] - region_at + 1)
  }
  if (files == 0) return "no such file"
  if (found == 0) return "no function " within[i]
  if (found > 1)
    return (within[i] == "" ? "files of this name" : within[i]) ": " found
  squeeze()
  return ""
}

# -- patterns ---------------------------------------------------------------------------

# Sets `flat`: the region with one blank for each run of blanks, line ends and comments, and
# and no blank after an opening bracket that ends a line. raw_at and raw_end say where in the region
# each of its characters comes from, ends_line which blanks end a line of Lua.
function squeeze(    n, i, start, len, broken, last) {
  if (in_path SUBSEP region_at == squeezed) return
  squeezed = in_path SUBSEP region_at
  flat = last = ""
  n = 0
  for (i = 1; i <= length(region); i += len) {
    start = i
    broken = 0
    while ((len = length_of_space(i)) > 0) {
      if (index(substr(region, i, len), "\n")) broken = 1
      i += len
    }
    if (i > start && !(broken && last == "(")) {
      flat = flat " "
      raw_at[++n] = start
      raw_end[n] = i - 1
      ends_line[n] = broken && is_lua(in_path)
    }
    len = length_of_text(i)
    for (start = i; start < i + len; start++) {
      flat = flat substr(region, start, 1)
      raw_at[++n] = raw_end[n] = start
      ends_line[n] = 0
    }
    last = substr(region, i + len - 1, 1)
  }
}

# The length of the blanks, or of the comment, at i of the region.
function length_of_space(i,    rest, two, end) {
  two = substr(region, i, 2)
  if (two ~ /^[ \t\n]/) return 1
  rest = substr(region, i)
  if (is_lua(in_path)) {
    if (two != "--") return 0
    end = index(rest, "\n")
    return end ? end - 1 : length(rest)
  }
  if (two != "/*") return 0
  end = index(rest, "*/")
  return end ? end + 1 : length(rest)
}

# The length of the literal at i, which may look like a comment; of any other character: 1.
function length_of_text(i,    rest) {
  if (substr(region, i, 1) !~ /["']/) return substr(region, i, 1) != ""
  rest = substr(region, i)
  return match(rest, /^("([^"\\\n]|\\.)*"|'([^'\\\n]|\\.)*')/) ? RLENGTH : 1
}

function is_word(c) { return c ~ /[A-Za-z0-9_]/ }

# Whether the text stands at k of flat, between ends of words.
function is_here(text, k,    end) {
  end = k + length(text)
  return substr(flat, k, end - k) == text &&
         !(k > 1 && is_word(substr(flat, k - 1, 1)) && is_word(substr(text, 1, 1))) &&
         !(is_word(substr(text, length(text))) && is_word(substr(flat, end, 1)))
}

# Matches the pieces of the pattern from the n-th on, from k of flat on; each `...` before
# them stands for as little as possible. Returns the end of the last piece, or 0.
function match_rest(n, k,    q, depth, c, end) {
  depth = 0
  for (q = k; ; q++) {
    if (depth == 0 && is_here(piece[n], q)) {
      end = q + length(piece[n])
      if (n < piece_count) end = match_rest(n + 1, end)
      if (end) {
        wild_at[n - 1] = k
        wild_end[n - 1] = q - 1
        return end
      }
    }
    c = substr(flat, q, 1)
    if (c == "" || c == ";" || ends_line[q]) return 0
    if (index("([{", c)) depth++
    if (index(")]}", c) && --depth < 0) return 0
  }
}

# Sets match_at and match_end, and the texts of `...` in wild. Returns the number of matches.
function find_pattern(pattern,    times, k, q, end, n) {
  gsub(/[ \t]+/, " ", pattern)
  piece_count = split(pattern, piece, /\.\.\./)
  times = 0
  for (q = 1; (k = index(substr(flat, q), piece[1])) > 0; q = k + 1) {
    k += q - 1
    if (!is_here(piece[1], k)) continue
    end = k + length(piece[1])
    if (piece_count > 1) end = match_rest(2, end)
    if (!end || ++times > 1) continue
    match_at = raw_at[k]
    match_end = raw_end[end - 1]
    for (n = 1; n < piece_count; n++) {
      wild[n] = ""
      if (wild_end[n] >= wild_at[n])
        wild[n] = substr(region, raw_at[wild_at[n]], raw_end[wild_end[n]] - raw_at[wild_at[n]] + 1)
    }
  }
  return times
}

# -- the mutation -----------------------------------------------------------------------

# Widens the match to the statement around it and the comment after it. Returns an error, or
# "".
function find_statement(    i, c, depth, line, rest, text) {
  for (;;) {
    while (match_at > 1 && substr(region, match_at - 1, 1) != "\n") match_at--
    line = substr(region, 1, match_at - 2)
    sub(/.*\n/, "", line)
    if (is_lua(in_path) || match_at == 1 || line !~ /[,(=&|+*<>"-]$/) break
    match_at--
  }
  rest = substr(region, match_at)
  match(rest, /^[ \t]*/)
  match_at += RLENGTH
  depth = 0
  for (i = match_at; ; i++) {
    c = substr(region, i, 1)
    if (c == "" || (c == "\n" && is_lua(in_path))) break
    if (index("([{", c)) depth++
    if (index(")]}", c)) depth--
    if (c == ";" && depth == 0) break
  }
  match_end = i
  text = substr(region, match_at, i - match_at)
  if (is_lua(in_path)) {
    match_end--
    sub(/ *--.*/, "", text)
    if (depth != 0 || words(text, "then do function") != words(text, "end"))
      return "what is to be dropped is no whole statement: " text
  } else if (c == "" || text ~ /[{}]/ || text ~ /^(if|for|while|switch|else|do|case) /) {
    return "what is to be dropped is no single statement: " text
  }
  rest = substr(region, match_end + 1)
  if (match(rest, /^ *\/\*[^\n]*\*\/\n/)) match_end += RLENGTH - 1
  return ""
}

function words(text, which,    n, list_of, i, found, sum) {
  n = split(which, list_of, " ")
  sum = 0
  for (i = 1; i <= n; i++) {
    found = " " text " "
    gsub(/[^A-Za-z0-9_]/, "&&", found)
    sum += gsub("[^A-Za-z0-9_]" list_of[i] "[^A-Za-z0-9_]", "", found)
  }
  return sum
}

# Sets match_at and match_end, and `instead`: the text that replaces the match. Returns an
# error, or "".
function prepare(i,    why, times, n, part, k) {
  why = find_place(i)
  if (why != "") return why
  times = find_pattern(from[i])
  if (times != 1)
    return "`" from[i] "` is " (times ? times " times" : "not") " in " \
           (within[i] == "" ? "it" : within[i])
  instead = ""
  if (op[i] == "drop") {
    why = find_statement()
    if (why != "") return why
  } else {
    n = split(to[i], part, /\.\.\./)
    if (n > piece_count) return "more `...` in `to` than in `from`"
    instead = part[1]
    for (k = 2; k <= n; k++) instead = instead wild[k - 1] part[k]
    if (instead == substr(region, match_at, match_end - match_at + 1))
      return "`to` is what is there"
  }
  if (instead == "") { # also removes the blanks after it, or else those before it
    if (substr(region, match_end + 1, 1) == " ")
      while (substr(region, match_end + 1, 1) == " ") match_end++
    else
      while (substr(region, match_at - 1, 1) == " ") match_at--
  }
  return ""
}

function make_one(    i, why, all) {
  for (i = 1; i <= count && name[i] != one; i++) continue
  why = i > count ? "no such mutant" : prepare(i)
  if (why != "") {
    complain(i, why)
    return
  }
  all = text_of(in_path)
  printf "%s%s%s", substr(all, 1, region_at + match_at - 2), instead,
    substr(all, region_at + match_end) > out
  print in_path
}

# -- all mutants ------------------------------------------------------------------------

function read_words(path, set,    line) {
  while ((getline line < path) > 0) set[line] = 1
}

function check_all(    i, k, why, word, test, part, line) {
  read_words(programs, program_set)
  while ((getline line < texts) > 0) {
    text_set[line] = 1
    sub(/\/.*/, "", line)
    has_source[line] = 1
  }
  for (i = 1; i <= count; i++) {
    if (name[i] !~ /^[A-Za-z0-9_-]+$/) complain(i, "not a name of letters, digits, _ and -")
    if (seen[name[i]]++) complain(i, "a second mutant of this name")
    if (i in unknown) complain(i, "does not know `" unknown[i] "`")
    if (i in twice) complain(i, "more than one `from` or `drop`")
    if (op[i] == "drop" && i in to) complain(i, "`to` beside `drop`")
    if (from[i] ~ /^\.\.\.|\.\.\.$/) complain(i, "`...` at an end of the pattern")
    if (file[i] == "" || from[i] == "") {
      complain(i, "needs `in`, and `from` or `drop`")
    } else {
      why = prepare(i)
      if (why != "") complain(i, why)
      else check_names(i)
    }
    if (!by_count[i]) complain(i, "has no `by`")
    for (k = 1; k <= by_count[i]; k++) {
      split(by[i, k], word, " ")
      if (word[1] == "nemesis") continue
      test = by[i, k]
      part = ""
      if (match(test, /\//)) {
        part = substr(test, RSTART + 1)
        test = substr(test, 1, RSTART - 1)
      }
      if (!(test in program_set)) complain(i, "no test program " test)
      else if (part != "" && test in has_source && !((test "/" part) in text_set))
        complain(i, "no test case " part)
    }
  }
  if (!count) { print list ": no mutants"; status = 1 }
}

# If no source has a name of the replacement, the name is outdated, unless the entry says new.
function check_names(i,    text, word) {
  text = to[i]
  gsub(/"[^"]*"|'[^']*'|%[a-z]+/, " ", text)
  while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
    word = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    if (!names_read) read_names()
    if (!(word in named) && !index(new[i], " " word " ")) complain(i, "no " word " in the sources")
  }
}

function read_names(    p, text, n, i, part) {
  names_read = 1
  for (p = 1; p <= path_count; p++) {
    n = split(text_of(paths[p]), part, /[^A-Za-z0-9_]+/)
    for (i = 1; i <= n; i++) named[part[i]] = 1
  }
}
