import type { Join } from '../ast.ts';
import { type Cursor, keywordOf } from './cursor.ts';

/** Type and strictness of a join. */
export type JoinKeywords = Pick<Join, 'type' | 'strictness'>;

const typeWords = { INNER: 'inner', LEFT: 'left', RIGHT: 'right', FULL: 'full' } as const;
const strictnessWords = { ANY: 'any', ALL: 'all', ASOF: 'asof', SEMI: 'semi', ANTI: 'anti' } as const;
const unsupportedJoins = ['NATURAL', 'PASTE', 'POSITIONAL', 'PIVOT', 'UNPIVOT', 'TABLESAMPLE'];

const isKeyOf = <Table extends object>(
  word: string | undefined,
  table: Table,
): word is keyof Table & string => word !== undefined && Object.hasOwn(table, word);

/** Reads a comma or the keywords up to JOIN, if a join comes next. */
export function acceptJoin(cursor: Cursor): JoinKeywords | undefined {
  if (cursor.acceptSymbol(',')) return { type: 'cross', strictness: null };
  const { token } = cursor;
  const first = keywordOf(token);
  if (first !== undefined && unsupportedJoins.includes(first))
    throw cursor.error(`${first} is not supported.`);
  if (cursor.acceptKeywords('CROSS', 'JOIN')) return { type: 'cross', strictness: null };
  // LEFT ARRAY JOIN is a separate clause.
  if (cursor.peekKeywords('LEFT', 'ARRAY') || cursor.peekKeywords('INNER', 'ARRAY')) return undefined;
  let type: JoinKeywords['type'] | undefined;
  let strictness: JoinKeywords['strictness'] = null;
  let read = 0;
  for (;;) {
    const word = keywordOf(cursor.token);
    if (isKeyOf(word, typeWords) && type === undefined) type = typeWords[word];
    else if (isKeyOf(word, strictnessWords) && strictness === null) strictness = strictnessWords[word];
    else if (word !== 'OUTER' || type === undefined || type === 'inner') break;
    cursor.advance();
    read += 1;
  }
  if (cursor.acceptKeywords('JOIN')) return checked(cursor, { type: type ?? 'inner', strictness }, token);
  if (read > 0) throw cursor.unexpected('JOIN', ['JOIN', 'OUTER']);
  return undefined;
}

function checked(cursor: Cursor, join: JoinKeywords, at: { readonly start: number }): JoinKeywords {
  const { type, strictness } = join;
  const isSemiOrAnti = strictness === 'semi' || strictness === 'anti';
  if (isSemiOrAnti && type === 'full')
    throw cursor.error(
      `A FULL JOIN cannot be ${strictness.toUpperCase()}.`,
      { start: at.start, end: cursor.previousEnd },
      'Use LEFT or RIGHT.',
    );
  return join;
}
