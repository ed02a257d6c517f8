/** What ends a text, a name, a comment or a statement of some program. Control characters are refused. */
export const worstNames = [
  `it's`,
  'say "hi"',
  'a`b',
  'a\\',
  `a\\'`,
  'a\\"',
  'a\\`',
  `'; drop table customers; --`,
  `"); drop table customers; --`,
  '` string) location `s3://evil/`; -- ',
  '$(touch /tmp/pasted)',
  '`touch /tmp/pasted`',
  '${HOME}',
  '-- comment',
  '/* comment',
  '*/',
  '{}',
  '{name}',
  '%s %',
  '$$',
  '#',
  "'''",
  '"""',
] as const;

/** A query whose files have the columns, and one for each of these names. */
export const queryOfWorstNames = (columns: readonly string[]): string =>
  `select ${[
    ...columns,
    ...worstNames.map((name) => `event as \`${name.replaceAll(/[\\`]/g, '\\$&')}\``),
  ].join(', ')} from events`;
