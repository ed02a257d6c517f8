import { describe, expect, it } from '@jest/globals';
import { parseJson } from '../../../src/client/exact_numbers.ts';
import {
  chartOf,
  csvOf,
  sortedBy,
  textOfValue,
  valueKindOf,
} from '../../../src/console/pages/query/query_run.ts';

describe('the kind of a type', () => {
  it.each([
    ['Int64', 'number'],
    ['Nullable(Float64)', 'number'],
    ['Decimal', 'number'],
    ["Nullable(DateTime64(6, 'UTC'))", 'time'],
    ['Date', 'time'],
    ['String', 'text'],
    ['Array(Int64)', 'text'],
  ])('of %s is %s', (type, kind) => {
    expect(valueKindOf(type)).toBe(kind);
  });
});

describe('the chart of a result', () => {
  it('draws numbers over time, in the order of time', () => {
    const types = [
      ['day', 'Date'],
      ['n', 'Int64'],
      ['share', 'Nullable(Float64)'],
    ] as const;
    const results = [
      ['2026-11-03', '9007199254740993', null],
      ['2026-11-02', 4, 0.5],
    ];
    expect(chartOf({ types, results })).toEqual({
      kind: 'times',
      times: [Date.UTC(2026, 10, 2) / 1_000, Date.UTC(2026, 10, 3) / 1_000],
      series: [
        { label: 'n', values: [4, 9_007_199_254_740_992] },
        { label: 'share', values: [0.5, null] },
      ],
    });
  });

  it('draws bars of a name and a number', () => {
    const types = [
      ['event', 'String'],
      ['n', 'Int64'],
    ] as const;
    expect(
      chartOf({
        types,
        results: [
          ['a', 2],
          [null, 1],
        ],
      }),
    ).toEqual({
      kind: 'bars',
      label: 'n',
      bars: [
        { name: 'a', value: 2 },
        { name: 'null', value: 1 },
      ],
    });
  });

  it('is absent without numbers, with one row, and where times repeat', () => {
    expect(chartOf({ types: [['a', 'String']], results: [['x'], ['y']] })).toBeNull();
    expect(chartOf({ types: [['n', 'Int64']], results: [[1], [2]] })).toBeNull();
    const types = [
      ['day', 'Date'],
      ['n', 'Int64'],
    ] as const;
    expect(chartOf({ types, results: [['2026-11-02', 1]] })).toBeNull();
    expect(
      chartOf({
        types,
        results: [
          ['2026-11-02', 1],
          ['2026-11-02', 2],
        ],
      }),
    ).toBeNull();
  });
});

it('shows objects as JSON', () => {
  expect([textOfValue({ a: [1] }), textOfValue(true), textOfValue('x')]).toEqual(['{"a":[1]}', 'true', 'x']);
});

it('writes CSV with quotes where a value needs them', () => {
  const results = [
    ['a "b", c', null],
    ['line\nline', { x: 1 }],
  ];
  expect(csvOf({ columns: ['name', 'value'], types: [], results })).toBe(
    'name,value\r\n"a ""b"", c",\r\n"line\nline","{""x"":1}"\r\n',
  );
});

it('saves no text that a spreadsheet would run as a formula', () => {
  const results = [
    ['=HYPERLINK("http://evil.example")', -2],
    ['+1', '-2.50'],
    ['@SUM(1)', null],
    ['\tx', 3],
    ['-2+3', 4],
    ["it's", 5],
  ];
  const types = [
    ['=name', 'String'],
    ['value', 'Decimal(10, 2)'],
  ] as const;
  expect(csvOf({ columns: ['=name', 'value'], types, results })).toBe(
    `'=name,value\r\n"'=HYPERLINK(""http://evil.example"")",-2\r\n'+1,-2.50\r\n'@SUM(1),\r\n'\tx,3\r\n'-2+3,4\r\nit's,5\r\n`,
  );
});

it('shows and saves all digits of a number that JavaScript cannot hold', () => {
  const results = parseJson('[[9007199254740993,{"id":9007199254740993}]]') as unknown[][];
  expect(results[0]?.map(textOfValue)).toEqual(['9007199254740993', '{"id":9007199254740993}']);
  expect(csvOf({ columns: ['n', 'o'], types: [], results })).toBe(
    'n,o\r\n9007199254740993,"{""id"":9007199254740993}"\r\n',
  );
});

it('sorts numbers by value, with nulls last in both directions', () => {
  const result = { types: [['n', 'Nullable(Int64)']] as const, results: [['10'], [null], ['9']] };
  expect(sortedBy(result, 0, 'ascending')).toEqual([['9'], ['10'], [null]]);
  expect(sortedBy(result, 0, 'descending')).toEqual([['10'], ['9'], [null]]);
});
