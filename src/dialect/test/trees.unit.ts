import { describe, expect, it } from '@jest/globals';
import { parseExpression, parseQuery, parseSelectItem } from '../parser/queries.ts';
import { withoutSpans } from './without_spans.ts';

const name = (text: string) => ({ kind: 'name', text });
const field = (...path: readonly string[]) => ({ kind: 'field', path: path.map(name) });
const number = (text: string) => ({ kind: 'number', text });
const string = (value: string) => ({ kind: 'string', value });
const callTo = (called: string, ...given: readonly unknown[]) => ({
  kind: 'call',
  name: name(called),
  parameters: null,
  distinct: false,
  arguments: given,
  orderBy: [],
  nulls: null,
  filter: null,
  over: null,
});
const tableNode = (path: string, alias: string | null = null) => ({
  kind: 'table',
  path: path.split('.').map(name),
  alias: alias === null ? null : name(alias),
  final: false,
  sample: null,
});
const interval = { kind: 'interval', amount: number('1'), unit: 'day' };
const selectOne = {
  kind: 'select',
  ctes: [],
  distinct: false,
  distinctOn: [],
  columns: [number('1')],
  from: null,
  arrayJoin: null,
  prewhere: null,
  where: null,
  groupBy: null,
  having: null,
  qualify: null,
  windows: [],
  orderBy: [],
  limitBy: null,
  limit: null,
};

describe('expression trees', () => {
  it.each<[string, unknown]>([
    ['properties.$browser', field('properties', '$browser')],
    ['`a b`."c"', field('a b', 'c')],
    [
      "properties['a b']",
      { kind: 'index', object: field('properties'), index: string('a b'), nullish: false },
    ],
    ['t.1', { kind: 'element', object: field('t'), position: number('1') }],
    ['f(x).y', { kind: 'member', object: callTo('f', field('x')), name: name('y'), nullish: false }],
    ['x?.y', { kind: 'member', object: field('x'), name: name('y'), nullish: true }],
    ['a[1:]', { kind: 'slice', object: field('a'), from: number('1'), to: null }],
    ["'it''s\\n'", string("it's\n")],
    ["'\\d'", string('\\d')],
    ['-1', { kind: 'unary', operator: '-', operand: number('1') }],
    ['1_000.5_0', number('1000.50')],
    ['0x1_F', number('0x1f')],
    ['dateDiff(DAY, a, b)', callTo('dateDiff', string('DAY'), field('a'), field('b'))],
    ['date_add(day, INTERVAL 1 DAY)', callTo('date_add', field('day'), interval)],
    ['age(day, a, b)', callTo('age', field('day'), field('a'), field('b'))],
    [
      "{filters.interval('week')}",
      { kind: 'placeholder', expression: callTo('filters.interval', string('week')) },
    ],
    ['a AND b AND c', { kind: 'logical', operator: 'and', operands: [field('a'), field('b'), field('c')] }],
    ['a not in b', { kind: 'comparison', operator: 'not in', left: field('a'), right: field('b') }],
    ['a is not null', { kind: 'is_null', operand: field('a'), negated: true }],
    ['a ?? b', { kind: 'nullish', left: field('a'), right: field('b') }],
    ['a ? b : c', { kind: 'conditional', condition: field('a'), then: field('b'), otherwise: field('c') }],
    ['INTERVAL 7 DAYS', { kind: 'interval', amount: number('7'), unit: 'day' }],
    ["INTERVAL '7 days'", { kind: 'interval', amount: number('7'), unit: 'day' }],
    ["DATE '2026-11-21'", { kind: 'time', type: 'date', text: '2026-11-21' }],
    ['{variables.x}', { kind: 'placeholder', expression: field('variables', 'x') }],
    ["f'a{b}'", { kind: 'template', parts: [string('a'), field('b')] }],
    ['x -> y', { kind: 'lambda', parameters: [name('x')], body: field('y') }],
    ['substring(a FROM 1)', callTo('substring', field('a'), number('1'))],
    [
      'a::Array(Int64)',
      {
        kind: 'cast',
        operand: field('a'),
        type: {
          kind: 'type',
          name: name('Array'),
          arguments: [{ kind: 'type', name: name('Int64'), arguments: [] }],
        },
        safe: false,
      },
    ],
    ['quantile(0.5)(x)', { ...callTo('quantile', field('x')), parameters: [number('0.5')] }],
    ['count(DISTINCT x)', { ...callTo('count', field('x')), distinct: true }],
    ['count() FILTER (WHERE x) OVER w', { ...callTo('count'), filter: field('x'), over: name('w') }],
  ])('%s', (text, tree) => {
    expect(withoutSpans(parseExpression(text))).toEqual(tree);
  });

  it('select items have aliases and stars', () => {
    expect(withoutSpans(parseSelectItem('a b'))).toEqual({
      kind: 'alias',
      expression: field('a'),
      name: name('b'),
    });
    expect(withoutSpans(parseSelectItem('e.*'))).toEqual({
      kind: 'star',
      table: [name('e')],
      exclude: [],
      replace: [],
    });
  });
});

describe('query trees', () => {
  it.each<[string, unknown]>([
    ['SELECT 1', selectOne],
    ['SELECT 1 FROM warehouse.orders o', { ...selectOne, from: tableNode('warehouse.orders', 'o') }],
    [
      'SELECT 1 LIMIT 2, 3',
      {
        ...selectOne,
        limit: { kind: 'limit', count: number('3'), percent: false, offset: number('2'), withTies: false },
      },
    ],
    [
      'SELECT 1 FROM a LEFT JOIN b USING x',
      {
        ...selectOne,
        from: {
          kind: 'join',
          type: 'left',
          strictness: null,
          left: tableNode('a'),
          right: tableNode('b'),
          constraint: { kind: 'using', columns: [name('x')] },
        },
      },
    ],
    [
      'SELECT 1 UNION ALL SELECT 1 INTERSECT SELECT 1',
      {
        kind: 'set_operation',
        operator: 'union all',
        operands: [
          selectOne,
          {
            kind: 'set_operation',
            operator: 'intersect all',
            operands: [selectOne, selectOne],
            orderBy: [],
            limit: null,
          },
        ],
        orderBy: [],
        limit: null,
      },
    ],
  ])('%s', (text, tree) => {
    expect(withoutSpans(parseQuery(text))).toEqual(tree);
  });
});
