/** A family of query texts of any length. */
export interface CompileShape {
  readonly name: string;
  /** A text with `count` repetitions. */
  text(count: number): string;
}

const repeated = (count: number, item: (index: number) => string, separator: string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join(separator);

/** Texts in which one construct repeats. Each may be long, and none may take longer than its length explains. */
export const compileShapes: readonly CompileShape[] = [
  {
    name: 'values of IN',
    text: (count) =>
      `select count() from events where event in (${repeated(count, (n) => `'value ${n}'`, ', ')})`,
  },
  {
    name: 'columns',
    text: (count) =>
      `select ${repeated(count, (n) => `properties.field_${n} as column_${n}`, ', ')} from events`,
  },
  {
    name: 'GROUP BY keys',
    text: (count) => {
      const keys = repeated(count, (n) => `properties.field_${n}`, ', ');
      return `select ${keys}, count() from events group by ${keys}`;
    },
  },
  {
    name: 'OR conditions',
    text: (count) =>
      `select count() from events where ${repeated(count, (n) => `properties.a_${n} = '${n}'`, ' or ')}`,
  },
  {
    name: 'branches of multiIf',
    text: (count) =>
      `select multiIf(${repeated(count, (n) => `event = 'e${n}', ${n}`, ', ')}, 0) as bucket, count() from events group by bucket`,
  },
  {
    name: 'aggregates',
    text: (count) =>
      `select ${repeated(count, (n) => `countIf(event = 'e${n}')`, ', ')} from events group by distinct_id having count() > 1`,
  },
  {
    name: 'aliases of aliases',
    text: (count) =>
      `select 1 as a_0, ${repeated(count, (n) => `a_${n} + 1 as a_${n + 1}`, ', ')} from events`,
  },
  {
    name: 'items of an array',
    text: (count) => `select arrayMap(x -> x + 1, [${repeated(count, String, ', ')}])`,
  },
  { name: 'characters of a string', text: (count) => `select '${'x'.repeat(count * 10)}'` },
  { name: 'comments', text: (count) => `select 1 ${repeated(count, (n) => `/* note ${n} */`, ' ')}` },
  {
    name: 'queries of UNION ALL',
    text: (count) => repeated(count, (n) => `select ${n} as n, count() from events`, ' union all '),
  },
  {
    name: 'subqueries of IN',
    text: (count) =>
      `select count() from events where ${repeated(count, (n) => `distinct_id in (select distinct_id from events where event = 'e${n}')`, ' and ')}`,
  },
];
