import { describe, expect, it } from '@jest/globals';
import { parseJson } from '../../../src/client/exact_numbers.ts';
import { toResultTable } from '../../../src/client/result_table.ts';
import {
  cellText,
  csvOf,
  sortedBy,
  textOfValue,
  valueKindOf,
  wholeText,
} from '../../../src/console/pages/query/result_values.ts';

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

describe('a value in a cell', () => {
  it.each([
    ['2026-11-08T07:50:32.033376+01:00', 'DateTime64(6)', '2026-11-08 07:50:32.033376'],
    ['2026-11-08T07:50:32.500000Z', "Nullable(DateTime64(6, 'UTC'))", '2026-11-08 07:50:32.5'],
    ['2026-11-08T07:50:32.000000+01:00', 'DateTime64(6)', '2026-11-08 07:50:32'],
    ['2026-11-08', 'Date', '2026-11-08'],
    ['2026-11-08T07:50:32Z', 'String', '2026-11-08T07:50:32Z'],
    [1_234_567, 'Int64', '1,234,567'],
    [2026, 'Int64', '2026'],
    [{ a: [1] }, 'String', '{"a":[1]}'],
  ])('%j of %s is %s', (value, type, text) => {
    expect(cellText(value, type)).toBe(text);
  });

  it('is whole in the panel, JSON with a line for each field', () => {
    expect(wholeText({ a: [1] })).toBe('{\n  "a": [\n    1\n  ]\n}');
    expect(wholeText('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(wholeText('{a')).toBe('{a');
  });
});

describe('the table of a response', () => {
  it('has a row for each interval of a trend, and a column for each line', () => {
    const days = ['2026-11-02', '2026-11-03'];
    const results = [
      { label: 'bought', days, labels: days, data: [1, 2], count: 3 },
      { label: 'left', days, labels: days, data: [0, 5], count: 5, compare: true, compare_label: 'previous' },
    ];
    expect(toResultTable({ results })).toEqual({
      columns: ['time', 'bought', 'left (previous)'],
      types: [
        ['time', 'Date'],
        ['bought', 'Float64'],
        ['left (previous)', 'Float64'],
      ],
      results: [
        ['2026-11-02', 1, 0],
        ['2026-11-03', 2, 5],
      ],
    });
  });

  it('has a row for each step and value of a funnel', () => {
    const step = (order: number, count: number, breakdown_value: string) => ({
      name: `step ${order}`,
      custom_name: null,
      order,
      count,
      average_conversion_time: order === 0 ? null : 60,
      median_conversion_time: order === 0 ? null : 50,
      breakdown_value,
    });
    const results = [
      [step(0, 3, 'Chrome'), step(1, 1, 'Chrome')],
      [step(0, 0, ''), step(1, 0, '')],
    ];
    expect(toResultTable({ results }).results).toEqual([
      ['1. step 0', 'Chrome', 3, 100, null, null],
      ['2. step 1', 'Chrome', 1, 33.33, 60, 50],
      ['1. step 0', '', 0, null, null, null],
      ['2. step 1', '', 0, null, 60, 50],
    ]);
  });

  it('has the one number of a total, bins, types alone, and anything else as JSON', () => {
    const total = [{ label: 'bought', days: [], data: [], aggregated_value: 7 }];
    expect(toResultTable({ results: total }).results).toEqual([['bought', 7]]);
    expect(toResultTable({ results: { bins: [[0, 2]], average_conversion_time: 3 } }).results).toEqual([
      [0, 2],
    ]);
    expect(toResultTable({ results: [[1]], columns: ['n'], types: ['Int64'] }).types).toEqual([
      ['n', 'Int64'],
    ]);
    expect(toResultTable({ results: [{ a: 1 }] }).results).toEqual([[{ a: 1 }]]);
    expect(toResultTable({ results: [] }).results).toEqual([]);
  });
});
