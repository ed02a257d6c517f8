import { describe, expect, it } from '@jest/globals';
import { DialectError } from '../../src/dialect/dialect_error.ts';
import {
  parseExpression,
  parseOrderItem,
  parseQuery,
  parseSelectItem,
} from '../../src/dialect/parser/parse.ts';
import { refusedOperators } from './refused_operators.ts';
import { refusedStatements } from './refused_statements.ts';
import { refusedValues } from './refused_values.ts';

function refusalOf(parse: () => unknown): DialectError {
  try {
    parse();
  } catch (error) {
    if (error instanceof DialectError) return error;
    throw error;
  }
  throw new Error('The text was not refused.');
}

describe('refused queries', () => {
  it.each([...refusedStatements, ...refusedValues, ...refusedOperators])('%s', (text, carets, says) => {
    const error = refusalOf(() => parseQuery(text));
    const line = text.split(/\r\n|\n/)[error.line - 1];
    expect(error.message).toBe(`${says}\n${line ?? ''}\n${carets}`);
    expect(says.endsWith(`(line ${error.line}, column ${error.column})`)).toBe(true);
    expect(Array.from(carets.trimEnd()).indexOf('^') + 1).toBe(error.column);
  });
});

describe('what an error tells', () => {
  it('has the place, the words and the suggestion as members', () => {
    const error = refusalOf(() => parseQuery('SELECT a\nFORM events'));
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

  it('cuts a long line round the fault', () => {
    const { excerpt, column } = refusalOf(() =>
      parseQuery(`SELECT ${'a, '.repeat(200)}) ${', b'.repeat(200)}`),
    );
    const [line = '', carets = ''] = excerpt.split('\n');
    expect(column).toBe(608);
    expect(line.length).toBeLessThanOrEqual(102);
    expect(line[carets.indexOf('^')]).toBe(')');
  });

  it('counts characters, not code units, before the fault', () => {
    expect(refusalOf(() => parseQuery("SELECT '😀😀' )"))).toMatchObject({ column: 13, offset: 14 });
  });
});

describe('texts that are no queries', () => {
  it.each([
    ['a condition', () => parseExpression('a = '), 5],
    ['a condition with a name', () => parseExpression('a AS b'), 3],
    ['a column', () => parseSelectItem('a b c'), 5],
    ['a column behind a column', () => parseSelectItem('a, b'), 2],
    ['an order', () => parseOrderItem('a DESC x'), 8],
  ])('%s', (_, parse, column) => {
    expect(refusalOf(parse).column).toBe(column);
  });
});

describe('limits', () => {
  const nested = (open: string, inner: string, close: string): string =>
    `SELECT ${open.repeat(10_000)}${inner}${close.repeat(10_000)}`;

  it.each([
    ['brackets', nested('(', '1', ')')],
    ['open brackets', nested('(', '', '')],
    ['queries', nested('(SELECT ', '1', ')')],
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
    ['queries in FROM', `SELECT 1 FROM ${'(SELECT 1 FROM '.repeat(10_000)}`],
    ['joined tables in brackets', `SELECT 1 FROM ${'('.repeat(10_000)}a`],
    ['joins', `SELECT 1 FROM a${', a'.repeat(10_000)}`],
    ['brackets round a query', `${'('.repeat(10_000)}SELECT 1`],
    ['CTEs', `${'WITH a AS ('.repeat(10_000)}SELECT 1`],
  ])('refuses 10,000 nested %s', (_, text) => {
    expect(refusalOf(() => parseQuery(text)).summary).toBe('This query is nested more than 250 levels deep.');
  });

  it('lets long lists and chains of conditions pass', () => {
    const many = (item: string, separator: string): string => Array(5000).fill(item).join(separator);
    expect(() => parseQuery(`SELECT 1 WHERE ${many('a', ' AND ')}`)).not.toThrow();
    expect(() => parseQuery(`SELECT a IN (${many("'x'", ', ')})`)).not.toThrow();
    expect(() => parseQuery(many('SELECT 1', ' UNION ALL '))).not.toThrow();
  });

  it('refuses long texts, long names and too many parts', () => {
    expect(refusalOf(() => parseQuery(`SELECT '${'x'.repeat(300_000)}'`)).summary).toBe(
      'A query may have at most 262144 characters.',
    );
    expect(refusalOf(() => parseQuery(`SELECT a${'.b'.repeat(64)}`)).summary).toBe(
      'A name may have at most 64 parts.',
    );
    expect(refusalOf(() => parseQuery(`SELECT ${'1,'.repeat(60_000)}1`)).summary).toBe(
      'A query may have at most 50000 syntax nodes.',
    );
  });
});
