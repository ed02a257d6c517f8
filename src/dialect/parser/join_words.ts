import type { Join } from '../ast.ts';
import { type Cursor, wordOf } from './cursor.ts';

/** How two tables are joined. */
export type JoinWords = Pick<Join, 'type' | 'strictness'>;

const typeWords = { INNER: 'inner', LEFT: 'left', RIGHT: 'right', FULL: 'full' } as const;
const strictnessWords = { ANY: 'any', ALL: 'all', ASOF: 'asof', SEMI: 'semi', ANTI: 'anti' } as const;
const refused = ['NATURAL', 'PASTE', 'POSITIONAL', 'PIVOT', 'UNPIVOT', 'TABLESAMPLE'];

const isKeyOf = <Table extends object>(
  word: string | undefined,
  table: Table,
): word is keyof Table & string => word !== undefined && Object.hasOwn(table, word);

/** Reads a comma or the words up to JOIN, if a join comes next. */
export function takeJoin(cursor: Cursor): JoinWords | undefined {
  if (cursor.takeSymbol(',')) return { type: 'cross', strictness: null };
  const { token } = cursor;
  const first = wordOf(token);
  if (first !== undefined && refused.includes(first)) throw cursor.error(`${first} is not supported.`);
  if (cursor.takeWords('CROSS', 'JOIN')) return { type: 'cross', strictness: null };
  // LEFT ARRAY JOIN is a clause of its own.
  if (cursor.atWords('LEFT', 'ARRAY') || cursor.atWords('INNER', 'ARRAY')) return undefined;
  let type: JoinWords['type'] | undefined;
  let strictness: JoinWords['strictness'] = null;
  let read = 0;
  for (;;) {
    const word = wordOf(cursor.token);
    if (isKeyOf(word, typeWords) && type === undefined) type = typeWords[word];
    else if (isKeyOf(word, strictnessWords) && strictness === null) strictness = strictnessWords[word];
    else if (word !== 'OUTER' || type === undefined || type === 'inner') break;
    cursor.advance();
    read += 1;
  }
  if (cursor.takeWords('JOIN')) return checked(cursor, { type: type ?? 'inner', strictness }, token);
  if (read > 0) throw cursor.unexpected('JOIN', ['JOIN', 'OUTER']);
  return undefined;
}

function checked(cursor: Cursor, join: JoinWords, at: { readonly start: number }): JoinWords {
  const { type, strictness } = join;
  const isHalf = strictness === 'semi' || strictness === 'anti';
  if (isHalf && type === 'full')
    throw cursor.error(
      `A FULL JOIN cannot be ${strictness.toUpperCase()}.`,
      { start: at.start, end: cursor.lastEnd },
      'Choose LEFT or RIGHT.',
    );
  return join;
}
