import { describe, expect, it } from '@jest/globals';
import { DialectError } from '../query_text.ts';
import { parseExpression, parseOrderItem, parseQuery, parseSelectItem } from '../parser/queries.ts';
import { invalidOperators } from './invalid_operators.ts';
import { invalidStatements } from './invalid_statements.ts';
import { invalidValues } from './invalid_values.ts';

function errorOf(parse: () => unknown): DialectError {
  try {
    parse();
  } catch (error) {
    if (error instanceof DialectError) return error;
    throw error;
  }
  throw new Error('The text was not rejected.');
}

describe('invalid queries', () => {
  it.each([...invalidStatements, ...invalidValues, ...invalidOperators])('%s', (text, carets, says) => {
    const error = errorOf(() => parseQuery(text));
    const line = text.split(/\r\n|\n/)[error.line - 1];
    expect(error.message).toBe(`${says}\n${line ?? ''}\n${carets}`);
    expect(says.endsWith(`(line ${error.line}, column ${error.column})`)).toBe(true);
    expect(Array.from(carets.trimEnd()).indexOf('^') + 1).toBe(error.column);
  });
});

describe('a dialect error', () => {
  it('has position, summary and suggestion as fields', () => {
    const error = errorOf(() => parseQuery('SELECT a\nFORM events'));
    expect(error).toMatchObject({
      name: 'DialectError',
      summary: '`FORM` is not a keyword.',
      suggestion: 'Perhaps you meant FROM?',
      line: 2,
      column: 1,
      offset: 9,
      length: 4,
      excerpt: 'FORM events\n^^^^',
    });
  });

  it('truncates a long line around the error', () => {
    const { excerpt, column } = errorOf(() =>
      parseQuery(`SELECT ${'a, '.repeat(200)}) ${', b'.repeat(200)}`),
    );
    const [line = '', carets = ''] = excerpt.split('\n');
    expect(column).toBe(608);
    expect(line.length).toBeLessThanOrEqual(102);
    expect(line[carets.indexOf('^')]).toBe(')');
  });

  it('counts characters, not code units, before the error', () => {
    expect(errorOf(() => parseQuery("SELECT '😀😀' )"))).toMatchObject({ column: 13, offset: 14 });
  });
});

describe('parse errors of other texts', () => {
  it.each([
    ['a condition', () => parseExpression('a = '), 5],
    ['a condition with an alias', () => parseExpression('a AS b'), 3],
    ['a column', () => parseSelectItem('a b c'), 5],
    ['a column after a column', () => parseSelectItem('a, b'), 2],
    ['an order item', () => parseOrderItem('a DESC x'), 8],
  ])('%s', (_, parse, column) => {
    expect(errorOf(parse).column).toBe(column);
  });
});

describe('limits', () => {
  const nested = (open: string, inner: string, close: string): string =>
    `SELECT ${open.repeat(10_000)}${inner}${close.repeat(10_000)}`;

  it.each([
    ['parentheses', nested('(', '1', ')')],
    ['open parentheses', nested('(', '', '')],
    ['calls', nested('f(', '1', ')')],
    ['arrays', nested('[', '1', ']')],
    ['placeholders', nested('{', 'a', '}')],
    ['template strings', nested("f'{", '1', "}'")],
    ['signs', nested('- ', '1', '')],
    ['NOT', nested('NOT ', 'a', '')],
    ['lambdas', nested('x -> ', '1', '')],
    ['CASE', nested('CASE WHEN ', 'a', ' THEN b END')],
    ['CAST', nested('CAST(', 'a', ' AS b)')],
    ['sums', nested('', '1', ' + 1')],
    ['conditionals', nested('', 'a', ' ? b : c')],
    ['indexes', nested('', 'a', '[1]')],
    ['types', `SELECT a::${'Array('.repeat(10_000)}`],
    ['parenthesized joins', `SELECT 1 FROM ${'('.repeat(10_000)}a`],
    ['joins', `SELECT 1 FROM a${', a'.repeat(10_000)}`],
    ['parentheses around a query', `${'('.repeat(10_000)}SELECT 1`],
    ['CTEs', `${'WITH a AS ('.repeat(10_000)}SELECT 1`],
  ])('reject 10,000 nested %s', (_, text) => {
    expect(errorOf(() => parseQuery(text)).summary).toBe('This query is nested more than 250 levels deep.');
  });

  it('accept long lists and chains of conditions', () => {
    const many = (item: string, separator: string): string => Array(5000).fill(item).join(separator);
    expect(() => parseQuery(`SELECT 1 WHERE ${many('a', ' AND ')}`)).not.toThrow();
    expect(() => parseQuery(`SELECT a IN (${many("'x'", ', ')})`)).not.toThrow();
  });

  it('reject more than 100 SELECTs, at the first one too many', () => {
    const union = (count: number): string => Array(count).fill('SELECT 1').join(' UNION ALL ');
    const inConditions = (count: number): string =>
      `SELECT 1 WHERE ${Array(count).fill('a IN (SELECT 1)').join(' AND ')}`;
    expect(() => parseQuery(union(100))).not.toThrow();
    expect(() => parseQuery(inConditions(99))).not.toThrow();
    for (const deep of [nested('(SELECT ', '1', ')'), `SELECT 1 FROM ${'(SELECT 1 FROM '.repeat(10_000)}`])
      expect(errorOf(() => parseQuery(deep)).summary).toMatch('at most 100 SELECTs');
    for (const [text, offset] of [
      [union(101), union(101).lastIndexOf('SELECT')],
      [inConditions(100), inConditions(100).lastIndexOf('SELECT')],
    ] as const)
      expect(errorOf(() => parseQuery(text))).toMatchObject({
        summary: 'A query may have at most 100 SELECTs.',
        offset,
        length: 'SELECT'.length,
      });
  });

  it.each(['IN', 'NOT IN', 'GLOBAL IN'])(
    'reject more than 10,000 values of %s, at the first one too many',
    (operator) => {
      const list = (count: number): string => `SELECT a ${operator} (${Array(count).fill('1').join(',')})`;
      expect(() => parseQuery(list(10_000))).not.toThrow();
      expect(errorOf(() => parseQuery(list(10_002)))).toMatchObject({
        summary: 'IN may have at most 10000 values, not 10002.',
        offset: list(10_000).length,
        length: 1,
      });
    },
  );

  it('reject long texts, long paths and too many nodes', () => {
    expect(errorOf(() => parseQuery(`SELECT '${'x'.repeat(300_000)}'`)).summary).toBe(
      'A query may have at most 262144 characters.',
    );
    expect(errorOf(() => parseQuery(`SELECT a${'.b'.repeat(64)}`)).summary).toBe(
      'A name may have at most 64 parts.',
    );
    expect(errorOf(() => parseQuery(`SELECT ${'1,'.repeat(60_000)}1`)).summary).toBe(
      'A query may have at most 50000 syntax nodes.',
    );
  });
});
