import type {
  DerivedTable,
  Expression,
  From,
  Join,
  NumberLiteral,
  OnConstraint,
  Ratio,
  Sample,
  Table,
  TableFunction,
  UsingConstraint,
} from '../ast.ts';
import { type Cursor, keywordOf } from './cursor.ts';
import { numberLiteral, anyName, optionalAlias, plainName } from './literals.ts';

const joins = new Set(['UNION', 'EXCEPT', 'INTERSECT', 'ORDER', 'LIMIT', 'OFFSET']);

/**
 * Whether the next parentheses contain a query rather than an expression or joined tables: `(SELECT 1)`, `((SELECT
 * 1) UNION ALL (SELECT 2))`, but not `((SELECT 1) + 1)`.
 */
export function peekParenthesizedQuery(cursor: Cursor): boolean {
  let ahead = 0;
  // More are nested too deeply for either. This is asked at each of them.
  while (ahead <= cursor.maxDepth && cursor.peekSymbol('(', ahead)) ahead += 1;
  const word = keywordOf(cursor.peek(ahead));
  if (ahead === 0 || (word !== 'SELECT' && word !== 'WITH')) return false;
  // From the innermost parenthesis outward: only set operators and query clauses may follow a closing one.
  let open = 0;
  let inner = ahead;
  for (let at = 0; inner > 1; at += 1) {
    const { kind } = cursor.peek(at);
    if (kind === 'end' || kind === 'invalid') return true;
    if (cursor.peekSymbol('(', at)) open += 1;
    if (!cursor.peekSymbol(')', at)) continue;
    open -= 1;
    if (open >= inner) continue;
    inner = open;
    const following = keywordOf(cursor.peek(at + 1));
    const joined = following !== undefined && joins.has(following);
    if (!joined && !cursor.peekSymbol(')', at + 1)) return false;
  }
  return true;
}

/** Type and strictness of a join. */
type JoinKeywords = Pick<Join, 'type' | 'strictness'>;

const typeWords = { INNER: 'inner', LEFT: 'left', RIGHT: 'right', FULL: 'full' } as const;
const strictnessWords = { ANY: 'any', ALL: 'all', ASOF: 'asof', SEMI: 'semi', ANTI: 'anti' } as const;
const unsupportedJoins = ['NATURAL', 'PASTE', 'POSITIONAL', 'PIVOT', 'UNPIVOT', 'TABLESAMPLE'];

const isKeyOf = <Table extends object>(
  word: string | undefined,
  table: Table,
): word is keyof Table & string => word !== undefined && Object.hasOwn(table, word);

/** Reads a comma or the keywords up to JOIN, if a join comes next. */
function acceptJoin(cursor: Cursor): JoinKeywords | undefined {
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

const expectedTable = 'a table, a subquery in parentheses or a table function';
const expectedAlias = 'an alias for this table';

/** The FROM clause: tables and joins, left to right. */
export function from(cursor: Cursor): From {
  return cursor.nested(() => {
    let left = joinOperand(cursor);
    for (;;) {
      const join = acceptJoin(cursor);
      if (join === undefined) return left;
      const right = joinOperand(cursor);
      const constraint = join.type === 'cross' ? null : joinConstraint(cursor);
      left = cursor.node<Join>(left.start, { kind: 'join', ...join, left, right, constraint });
    }
  });
}

function joinConstraint(cursor: Cursor): OnConstraint | UsingConstraint {
  const { start } = cursor.token;
  if (cursor.acceptKeywords('ON')) {
    const condition = cursor.grammar.expression(cursor);
    return cursor.node<OnConstraint>(start, { kind: 'on', condition });
  }
  if (!cursor.acceptKeywords('USING'))
    throw cursor.unexpected('ON or USING with a join condition', ['ON', 'USING']);
  const columns = (): UsingConstraint['columns'] =>
    cursor.list(() => plainName(cursor, 'the name of a column in both tables'));
  const named = cursor.peekSymbol('(') ? cursor.parenthesized(columns) : columns();
  return cursor.node<UsingConstraint>(start, { kind: 'using', columns: named });
}

function joinOperand(cursor: Cursor): From {
  if (cursor.peekSymbol('(')) return parenthesizedFrom(cursor);
  if (cursor.peekSymbol('{')) throw cursor.error('A placeholder cannot replace a table.');
  if (cursor.peekKeywords('LATERAL')) throw cursor.error('LATERAL is not supported.');
  if (cursor.peekKeywords('VALUES'))
    throw cursor.error('VALUES is not supported.', cursor.token, 'Use arrayJoin([…]).');
  const { start } = cursor.token;
  const first = plainName(cursor, expectedTable);
  if (cursor.peekSymbol('(')) {
    const read = tableArguments(cursor);
    const alias = optionalAlias(cursor, expectedAlias);
    rejectSample(cursor);
    return cursor.node<TableFunction>(start, { kind: 'table_function', name: first, arguments: read, alias });
  }
  const path = [first];
  while (cursor.acceptSymbol('.')) path.push(anyName(cursor, 'the rest of the table name'));
  return table(cursor, start, path);
}

/** FINAL and SAMPLE may come before or after the alias. */
function table(cursor: Cursor, start: number, path: Table['path']): Table {
  const finalBefore = cursor.acceptKeywords('FINAL');
  const sampleBefore = optionalSample(cursor);
  const alias = optionalAlias(cursor, expectedAlias);
  const final = finalBefore || cursor.acceptKeywords('FINAL');
  const sample = sampleBefore ?? optionalSample(cursor);
  return cursor.node<Table>(start, { kind: 'table', path, alias, final, sample });
}

function tableArguments(cursor: Cursor): readonly Expression[] {
  return cursor.parenthesized(() =>
    cursor.peekSymbol(')') ? [] : cursor.list(() => cursor.grammar.expression(cursor)),
  );
}

/** A subquery or joined tables in parentheses. */
function parenthesizedFrom(cursor: Cursor): From {
  const { start } = cursor.token;
  if (!peekParenthesizedQuery(cursor)) return cursor.parenthesized(() => from(cursor));
  const query = cursor.parenthesized(() => cursor.grammar.query(cursor));
  const alias = optionalAlias(cursor, 'an alias for this query');
  rejectSample(cursor);
  return cursor.node<DerivedTable>(start, { kind: 'derived_table', query, alias });
}

function optionalSample(cursor: Cursor): Sample | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('SAMPLE')) return null;
  const share = ratio(cursor);
  const offset = cursor.acceptKeywords('OFFSET') ? ratio(cursor) : null;
  return cursor.node<Sample>(start, { kind: 'sample', ratio: share, offset });
}

/** @throws DialectError for SAMPLE of anything but a table */
function rejectSample(cursor: Cursor): void {
  if (cursor.peekKeywords('SAMPLE'))
    throw cursor.error('Only a table can be sampled.', cursor.token, 'Write SAMPLE after the table name.');
}

function ratio(cursor: Cursor): Ratio {
  const { start } = cursor.token;
  const numerator = sampleNumber(cursor);
  const denominator = cursor.acceptSymbol('/') ? sampleNumber(cursor) : null;
  return cursor.node<Ratio>(start, { kind: 'ratio', numerator, denominator });
}

function sampleNumber(cursor: Cursor): NumberLiteral {
  if (!cursor.peekKind('number')) throw cursor.unexpected('a sampling ratio such as 0.1 or 1/10', []);
  return numberLiteral(cursor);
}
