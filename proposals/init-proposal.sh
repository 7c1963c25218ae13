#!/usr/bin/env bash
# Starts a proposal: takes the next number, fills in the template and adds the row to the index.
# Needs bash >= 4 and the usual tools (mkdir, cp, mv, rm, date, readlink); git only to find the author. One file, long as
# it is, so that it can be copied with the template and README.md alone.
#
# No text of the user's is ever the replacement of a substitution: bash >= 5.2 expands `&` there, and a value that
# holds a placeholder would be filled in again.
set -euo pipefail

if ((BASH_VERSINFO[0] < 4)); then
  echo "init-proposal.sh: bash $BASH_VERSION is too old; run it with bash 4 or newer" >&2
  exit 1
fi

CALLER_LOCALE=${LC_ALL:-${LC_CTYPE:-${LANG:-}}}
LC_ALL=C # bytes, so that patterns mean the same on every machine; only the slug needs to know letters
unset CDPATH

readonly STATUSES='draft provisional implementable implementing implemented withdrawn rejected'
readonly INDEX_HEADER='| Proposal |'
# A number is what stands in front of the first character that is neither letter nor digit: 0042-x.md, but not 3d-view.md.
# Nine digits at most, so that arithmetic cannot overflow.
readonly NUMBERED='^([0-9]{1,9})([^[:alnum:]]|$)'
readonly ROW='^\|[[:blank:]]*\[SUP-([0-9]{1,9})\]'
readonly UTF8=$'^([^\x80-\xff]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*$'
readonly MAX_BYTES=2000 # of a title, an author or a path: a row of the index is to be read
readonly MAX_SLUG=60 # characters; four bytes each still fit a file name of 255 bytes

usage() {
  cat <<'TEXT'
Usage: init-proposal.sh [-s|--status S] [-a|--author A] [-o|--output P] [-h] [--] TITLE

Starts a proposal from the template, under the next number, and adds its row to README.md.

  -s, --status S   draft (default), provisional, implementable, implementing,
                   implemented, withdrawn or rejected
  -a, --author A   default: git's user.name, else user.email, else $USER
  -o, --output P   write to P instead of NNNN-slug.md beside this script;
                   `P/` is a folder to write to; digits that P's name begins
                   with are the number; missing folders are made
  -h, --help       this text

--status=S, --author=A and --output=P also take values that begin with `-`.
`--` goes before a TITLE that begins with `-`. Nothing is ever overwritten.
INIT_PROPOSAL_WAIT: seconds to wait for another run that is at work (30).
Exit code: 0 made, 1 could not be made, 2 called wrongly.
TEXT
}

fail() {
  printf 'init-proposal.sh: %s\n' "$1" >&2
  exit 1
}

misuse() {
  printf 'init-proposal.sh: %s\n%s\n' "$1" \
    'Usage: init-proposal.sh [-s|--status S] [-a|--author A] [-o|--output P] [-h] [--] TITLE' >&2
  exit 2
}

is_blank() { # TEXT: nothing to be seen in it, blanks beyond ASCII included
  local text=$1 blank
  for blank in $'\xc2\xa0' $'\xe2\x80[\x80-\x8f]' $'\xe2\x80\xaf' $'\xe2\x81\x9f' $'\xe3\x80\x80' $'\xef\xbb\xbf'; do
    # shellcheck disable=SC2295 # it is a pattern
    text=${text//$blank/}
  done
  [[ $text != *[!$' \t\n\v\f\r']* ]]
}

require_text() { # WHAT TEXT: one line of readable UTF-8, which YAML, Markdown and terminals all show as it is
  if is_blank "$2"; then misuse "$1 is empty"; fi
  if ((${#2} > MAX_BYTES)); then misuse "$1 is too long: ${#2} bytes, at most $MAX_BYTES"; fi
  [[ $2 =~ $UTF8 ]] || misuse "$1 is not valid UTF-8"
  case $2 in
    *[[:cntrl:]]* | *$'\xc2'[$'\x80'-$'\x9f']* | *$'\xe2\x80'[$'\xa8\xa9']* | *$'\xef\xbf'[$'\xbe\xbf']*)
      misuse "$1 holds a line break or another control character; give plain text on one line" ;;
  esac
}

require_value() { # OPTION LONG-NAME PREVIOUS ARGUMENTS-LEFT VALUE
  [[ -z $3 ]] || misuse "option $1 is given twice"
  (($4 >= 2)) || misuse "option $1 needs a value"
  if [[ $1 != --*=* && $5 == -* ]]; then
    misuse "option $1 needs a value, but $(printf %q "$5") looks like an option; if it is meant: $2=$(printf %q "$5")"
  fi
  require_text "the value of ${1%%=*}" "$5"
}

exists() { [[ -e $1 || -L $1 ]]; } # a dangling symbolic link exists, too

number_of() { # FILE-NAME: REPLY is the number that it begins with, or empty
  REPLY=''
  if [[ $1 =~ $NUMBERED ]]; then REPLY=$((10#${BASH_REMATCH[1]})); fi
}

# --- one run at a time ---------------------------------------------------------------------------------------------
# A run puts up a sign of its own, named for its process, and then looks for the signs of others. Of two runs that do so
# at once at least one sees the other, so never do both go on: who sees a living one takes its own sign down and tries
# again. What a killed run leaves is only its sign, which anyone may take away: no other run has that name.

is_dead() { # SIGN: whether it is known to be that of a process of this machine that is gone
  local name=${1#"$signs"} pid said
  pid=${name%%@*}
  [[ $name == *@"$HOSTNAME".* && $pid =~ ^[0-9]+$ ]] || return 1
  if ((pid == $$)); then return 0; fi # an older process with the number that is ours now
  if said=$(kill -0 "$pid" 2>&1); then # there; but perhaps only until its parent asks how it ended
    { read -r said <"/proc/$pid/stat"; } 2>/dev/null && [[ ${said##*) } == Z* ]]
  else
    [[ $said == *'No such process'* ]] # and not another user's, which may not be asked
  fi
}

find_other() { # REPLY is the sign of another run that may be at work, or empty; those of dead ones are taken away
  local other
  REPLY=''
  for other in "$signs"*; do
    if [[ $other == "$sign" ]] || ! exists "$other"; then
      continue
    elif is_dead "$other"; then
      rm -f -- "$other"
    else
      REPLY=$other
    fi
  done
}

wait_for_turn() {
  local wait=${INIT_PROPOSAL_WAIT:-30}
  [[ $wait =~ ^[0-9]{1,6}$ ]] || misuse "INIT_PROPOSAL_WAIT is not a number of seconds: $(printf %q "$wait")"
  [[ -w $here ]] || fail "cannot write to the folder $here"
  wait=$((SECONDS + 10#$wait))
  while true; do
    find_other
    if [[ -z $REPLY ]]; then
      : >"$sign" || fail "cannot write $sign"
      find_other
      if [[ -z $REPLY ]]; then return; fi
      rm -f -- "$sign"
    fi
    if ((SECONDS >= wait)); then fail "another run is at work; if there is none, remove $REPLY"; fi
    sleep "0.0$((RANDOM % 90 + 10))" 2>/dev/null || sleep 1 # at random, so that two do not keep meeting
  done
}

# --- the parts of a proposal ---------------------------------------------------------------------------------------

default_author() {
  local name
  for name in "$(git -C "$here" config user.name 2>/dev/null || :)" \
    "$(git -C "$here" config user.email 2>/dev/null || :)" "${USER:-}"; do
    if ! is_blank "$name"; then
      printf '%s' "$name"
      return
    fi
  done
  printf 'Unknown Author'
}

utf8_locale() { # the first locale here that knows letters beyond ASCII
  local name
  for name in C.UTF-8 en_US.UTF-8 UTF-8 "$CALLER_LOCALE"; do
    # shellcheck disable=SC2030 # meant for the subshell
    if (LC_ALL=$name; letter=$'\xc3\xa9'; [[ ${#letter} -eq 1 && $letter == [[:alpha:]] ]]) 2>/dev/null; then
      printf '%s' "$name"
      return
    fi
  done
  printf 'C'
}

slug_of() ( # TITLE: its letters and digits of every script in lower case, `-` for the rest; ASCII alone without UTF-8
  # shellcheck disable=SC2031
  LC_ALL=$(utf8_locale)
  slug=${1:0:MAX_SLUG * 4}
  slug=${slug,,}
  slug=${slug//[\']/}
  slug=${slug//[^[:alnum:]]/-}
  while [[ $slug == *--* ]]; do slug=${slug//--/-}; done
  slug=${slug#-}
  slug=${slug:0:MAX_SLUG}
  slug=${slug%-}
  printf '%s' "${slug:-proposal}"
)

quote_yaml() { # TEXT as a single-quoted scalar, in which nothing but the quote itself is special
  local quote="'"
  printf "'%s'" "${1//$quote/$quote$quote}"
}

render() { # TEMPLATE-TEXT: REPLY is the text with every placeholder filled in, in one pass
  local rest=$1 name
  REPLY=''
  while [[ $rest == *'{{'*'}}'* ]]; do
    REPLY+=${rest%%'{{'*}
    rest=${rest#*'{{'}
    name=${rest%%'}}'*}
    rest=${rest#*'}}'}
    case $name in
      title) REPLY+=$title ;;
      yaml_title) REPLY+=$(quote_yaml "$title") ;;
      yaml_author) REPLY+=$(quote_yaml "$author") ;;
      status) REPLY+=$status ;;
      date) REPLY+=$today ;;
      number) REPLY+=$number ;;
      id) REPLY+=$id ;;
      *) fail "$template has a placeholder that is not known: {{$name}}" ;;
    esac
  done
  REPLY+=$rest
}

relative_link() { # FILE: its way from the index, as a link of Markdown
  local folder base way='' path char code i
  folder=$(dirname -- "$1")
  path=$(cd -P -- "$folder" && pwd -P)/${1##*/}
  base=$(cd -P -- "$here" && pwd -P)
  while [[ $path != "$base"/* ]]; do
    base=${base%/*}
    way+=../
  done
  path=$way${path#"$base"/}
  REPLY=''
  for ((i = 0; i < ${#path}; i++)); do
    char=${path:i:1}
    if [[ $char != [A-Za-z0-9._~/-] ]]; then # ASCII is escaped, other letters may stand in a link
      printf -v code '%d' "'$char"
      if ((code >= 32 && code < 127)); then printf -v char '%%%02X' "$code"; fi
    fi
    REPLY+=$char
  done
}

index_with_row() { # REPLY is the index with the proposal's row among the others, in the order of numbers
  local line cell='' where=before row text='' i
  for ((i = 0; i < ${#title}; i++)); do
    case ${title:i:1} in
      [\\\|]) cell+=$'\\' ;; # the two characters that would change where a cell of the table ends
    esac
    cell+=${title:i:1}
  done
  relative_link "$destination"
  row="| [SUP-$id]($REPLY) | $cell | $status | $today |"
  while IFS= read -r line || [[ -n $line ]]; do
    case $where in
      before) if [[ $line == "$INDEX_HEADER"* ]]; then where=header; fi ;;
      header) where=rows ;;
      rows)
        if [[ $line != '|'* || ($line =~ $ROW && $((10#${BASH_REMATCH[1]})) -gt $number) ]]; then
          text+=$row$'\n'
          where=after
        fi
        ;;
    esac
    text+=$line$'\n'
  done <"$index"
  if [[ $where == rows ]]; then
    text+=$row$'\n'
    where=after
  fi
  [[ $where == after ]] || fail "$index has no table that begins with \`$INDEX_HEADER\`; restore it"
  REPLY=$text
}

# --- command line --------------------------------------------------------------------------------------------------

title='' status='' author='' output='' titles=0 options=yes
while (($# > 0)); do
  if [[ $options == yes && $1 == -* ]]; then
    case $1 in
      -h | --help) usage; exit 0 ;;
      --) options=no; shift; continue ;;
      -s | --status) require_value "$1" --status "$status" $# "${2-}"; status=$2; shift ;;
      -a | --author) require_value "$1" --author "$author" $# "${2-}"; author=$2; shift ;;
      -o | --output) require_value "$1" --output "$output" $# "${2-}"; output=$2; shift ;;
      --status=*) require_value "$1" '' "$status" 2 "${1#*=}"; status=${1#*=} ;;
      --author=*) require_value "$1" '' "$author" 2 "${1#*=}"; author=${1#*=} ;;
      --output=*) require_value "$1" '' "$output" 2 "${1#*=}"; output=${1#*=} ;;
      *) misuse "unknown option $(printf %q "$1"); \`--\` goes before a title that begins with \`-\`" ;;
    esac
  else
    ((titles += 1))
    ((titles == 1)) || misuse "more than one title: $(printf %q "$title") and $(printf %q "$1"); quote a title with blanks"
    require_text 'the title' "$1"
    title=$1
  fi
  shift
done
((titles == 1)) || misuse 'the title is missing'

status=${status:-draft}
status=${status,,}
case " $STATUSES " in
  *" $status "*) [[ $status != *' '* ]] || misuse "unknown status $(printf %q "$status"); one of: ${STATUSES// /, }" ;;
  *) misuse "unknown status $(printf %q "$status"); one of: ${STATUSES// /, }" ;;
esac

source=${BASH_SOURCE[0]}
while [[ -L $source ]]; do
  target=$(readlink "$source")
  case $target in
    /*) source=$target ;;
    *) source=$(dirname -- "$source")/$target ;;
  esac
done
here=$(dirname -- "$source")
template=$here/proposal-template.md.template
index=$here/README.md
signs=$here/.init-proposal.run.
sign=$signs$$@$HOSTNAME.$RANDOM

[[ -r $template ]] || fail "the template $template is missing or cannot be read; restore it"
[[ -r $index ]] || fail "the index $index is missing or cannot be read; restore it"
[[ ! -L $index ]] || fail "the index $index is a symbolic link; put the file itself there"
if [[ -z $author ]]; then
  author=$(default_author)
  require_text "the author that git or \$USER names" "$author"
fi

asked=''
if [[ -n $output ]]; then
  case $output in
    -*) output=./$output ;;
  esac
  if [[ $output != */ ]]; then
    if [[ -d $output ]]; then fail "$output is a folder; to write into it: --output $output/"; fi
    name=${output##*/}
    number_of "$name"
    asked=$REPLY
    if [[ -z $asked && $name =~ ^[0-9]{10,}([^[:alnum:]]|$) ]]; then
      misuse "the number that $name begins with is too long; nine digits at most"
    fi
  fi
fi

# --- take the number, write the file, add the row: together or not at all ----------------------------------------------

created='' scratch=''
clean_up() {
  if [[ -n $created ]]; then rm -f -- "$created"; fi
  if [[ -n $scratch ]]; then rm -f -- "$scratch"; fi
  rm -f -- "$sign"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

wait_for_turn

highest=0 taken=''
for file in "$here"/[0-9]*.md; do
  exists "$file" || continue
  number_of "${file##*/}"
  [[ -n $REPLY ]] || continue
  if ((REPLY > highest)); then highest=$REPLY; fi
  if [[ $REPLY == "$asked" ]]; then taken=$file; fi
done
while IFS= read -r line || [[ -n $line ]]; do # a row keeps its number, wherever the file is
  [[ $line =~ $ROW ]] || continue
  REPLY=$((10#${BASH_REMATCH[1]}))
  if ((REPLY > highest)); then highest=$REPLY; fi
  if [[ $REPLY == "$asked" && -z $taken ]]; then taken=$index; fi
done <"$index"
number=${asked:-$((highest + 1))}
printf -v id '%04d' "$number"
[[ -z $taken ]] || fail "SUP-$id is taken: see $taken"
today=$(date +%Y-%m-%d)

case $output in
  '') destination=$here/$id-$(slug_of "$title").md ;;
  */) destination=$output$id-$(slug_of "$title").md ;;
  *) destination=$output ;;
esac
render "$(<"$template")"
content=$REPLY
folder=$(dirname -- "$destination")
mkdir -p -- "$folder" || fail "cannot make the folder $folder"
if [[ -L $destination && ! -e $destination ]]; then
  fail "$destination is a symbolic link that leads nowhere; nothing was written through it"
fi
if exists "$destination"; then fail "$destination exists already; nothing was overwritten"; fi
index_with_row
rows=$REPLY

# `set -C` opens a new file or none, also where a link or a file has appeared since; `created` is set only once it is ours.
set -C
# (`if ! {` would not do: bash does not negate a redirection that has failed.)
{ created=$destination; printf '%s\n' "$content" >&3; } 2>/dev/null 3>"$destination" || fail "cannot write $destination"
set +C
scratch=$here/.init-proposal.$$.md
{ cp -p -- "$index" "$scratch" && printf '%s' "$rows" >"$scratch"; } || fail "cannot write $scratch"
trap '' HUP INT TERM # the row and the file belong together from here on
mv -f -- "$scratch" "$index" || fail "cannot replace $index"
created='' scratch=''
printf 'Created %s\n' "$destination"
