import type { Command } from 'commander';

export const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** What may follow a command: its subcommands and its flags, with their descriptions. */
interface Candidates {
  /** The words of the command, such as `export list`; empty for `exportd` itself. */
  readonly path: string;
  readonly words: readonly Candidate[];
  readonly flags: readonly Candidate[];
}

interface Candidate {
  readonly text: string;
  readonly description: string;
}

/** All commands below one, itself first. */
function candidatesOf(command: Command, path = ''): Candidates[] {
  const { commands } = command;
  const words = commands.map((one) => ({ text: one.name(), description: one.description() }));
  const flags = command.options
    .filter(({ hidden, long }) => !hidden && long !== undefined)
    .map(({ long, description }) => ({ text: long ?? '', description }));
  return [
    { path, words, flags: [...flags, { text: '--help', description: 'display help for command' }] },
    ...commands.flatMap((one) => candidatesOf(one, `${path} ${one.name()}`.trim())),
  ];
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const list = (candidates: readonly Candidate[]): string => candidates.map(({ text }) => text).join(' ');

/** Prints the candidates of a path, in bash and in zsh. */
const cases = (
  name: string,
  all: readonly Candidates[],
  of: (one: Candidates) => string,
): string => `${name}() {
  case "$1" in
${all.map((one) => `    ${quoted(one.path)}) ${of(one)} ;;`).join('\n')}
  esac
}`;

const bash = (
  all: readonly Candidates[],
): string => `# exportd completion bash > /etc/bash_completion.d/exportd
${cases('_exportd_words', all, ({ words }) => `echo ${quoted(list(words))}`)}
${cases('_exportd_flags', all, ({ flags }) => `echo ${quoted(list(flags))}`)}
_exportd() {
  local command= word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case " $(_exportd_words "$command") " in *" $word "*) command=\${command:+$command }$word ;; esac
  done
  word=\${COMP_WORDS[COMP_CWORD]}
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(_exportd_flags "$command")" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$(_exportd_words "$command")" -- "$word"))
  fi
}
complete -o default -F _exportd exportd
`;

const described = (candidates: readonly Candidate[]): string =>
  candidates.map(({ text, description }) => quoted(`${text}:${description}`)).join(' ');

const zsh = (all: readonly Candidates[]): string => `#compdef exportd
# exportd completion zsh > "\${fpath[1]}/_exportd"
${cases('_exportd_words', all, ({ words }) => `candidates=(${described(words)})`)}
${cases('_exportd_flags', all, ({ flags }) => `candidates=(${described(flags)})`)}
_exportd() {
  local command word
  local -a candidates
  for word in \${words[2,CURRENT-1]}; do
    _exportd_words "$command"
    [[ -n \${(M)candidates:#$word:*} ]] && command=\${command:+$command }$word
  done
  candidates=()
  if [[ $PREFIX == -* ]]; then
    _exportd_flags "$command"
  else
    _exportd_words "$command"
  fi
  if (( \${#candidates} )); then
    _describe exportd candidates
  else
    _files
  fi
}
compdef _exportd exportd
`;

const fish = (
  all: readonly Candidates[],
): string => `# exportd completion fish > ~/.config/fish/completions/exportd.fish
set -g __exportd_commands ${all.flatMap(({ path }) => (path === '' ? [] : [quoted(path)])).join(' ')}
function __exportd_command_is
  set -l command ''
  for word in (commandline -opc)[2..]
    set -l longer (string trim "$command $word")
    contains -- $longer $__exportd_commands; and set command $longer
  end
  test "$command" = "$argv[1]"
end
${all
  .flatMap(({ path, words, flags }) => {
    const start = `complete -c exportd -n ${quoted(`__exportd_command_is "${path}"`)}`;
    return [
      ...words.map(({ text, description }) => `${start} -f -a ${quoted(text)} -d ${quoted(description)}`),
      ...flags.map(
        ({ text, description }) => `${start} -l ${quoted(text.replace('--', ''))} -d ${quoted(description)}`,
      ),
    ];
  })
  .join('\n')}
`;

/** The script that completes the commands and flags of a program in a shell. */
export const completionScript = (program: Command, shell: Shell): string =>
  ({ bash, zsh, fish })[shell](candidatesOf(program));
