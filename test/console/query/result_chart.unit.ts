import { describe, expect, it } from '@jest/globals';
import { chartOf } from '../../../src/console/pages/query/result_chart.ts';

const day = (number: number) => Date.UTC(2026, 10, number) / 1_000;
type Types = readonly (readonly [string, string])[];
const chart = (types: Types, results: readonly (readonly unknown[])[], zone = 'UTC') =>
  chartOf({ types, results }, zone);

const ofDay: Types = [
  ['day', 'Date'],
  ['event', 'String'],
  ['n', 'Int64'],
];

describe('a result with times', () => {
  it('has a line for each number, in the order of time', () => {
    const types: Types = [
      ['day', 'Date'],
      ['n', 'Int64'],
      ['share', 'Nullable(Float64)'],
    ];
    expect(
      chart(types, [
        ['2026-11-03', '9007199254740993', null],
        ['2026-11-02', 4, 0.5],
      ]),
    ).toEqual({
      kind: 'times',
      label: 'n and share by day',
      times: [day(2), day(3)],
      series: [
        { label: 'n', values: [4, 9_007_199_254_740_992] },
        { label: 'share', values: [0.5, null] },
      ],
      omitted: null,
    });
  });

  it('has a line for each text in long form, with gaps where rows are missing', () => {
    const rows = [
      ['2026-11-02', 'bought', 4],
      ['2026-11-02', 'left', 1],
      ['2026-11-03', 'left', 2],
      ['2026-11-04', null, 3],
    ];
    expect(chart(ofDay, rows)).toEqual({
      kind: 'times',
      label: 'n by day and event',
      times: [day(2), day(3), day(4)],
      series: [
        { label: 'bought', values: [4, null, null] },
        { label: 'left', values: [1, 2, null] },
        { label: 'null', values: [null, null, 3] },
      ],
      omitted: null,
    });
  });

  it('names a line of several texts and numbers by all of them', () => {
    const types: Types = [...ofDay, ['plan', 'Nullable(String)'], ['people', 'Int64']];
    const rows = [
      ['2026-11-02', 'left', 4, 'pro', 2],
      ['2026-11-03', 'left', 5, 'pro', 3],
    ];
    expect(chart(types, rows)).toMatchObject({
      series: [
        { label: 'left · pro · n', values: [4, 5] },
        { label: 'left · pro · people', values: [2, 3] },
      ],
    });
  });

  it('has days of the zone, and moments of any offset', () => {
    const types: Types = [
      ['t', 'DateTime64(6)'],
      ['n', 'Int64'],
    ];
    const rows = [
      ['2026-11-02T00:00:00-05:00', 1],
      ['2026-11-03T00:00:00-05:00', 2],
    ];
    const berlin = [
      ['2026-11-02', 'a', 1],
      ['2026-11-03', 'a', 2],
    ];
    const hours = [
      ['2026-11-02 10:00:00', 'a', 1],
      ['2026-11-02 11:00:00', 'a', 2],
    ];
    expect(chart(types, rows, 'America/New_York')).toMatchObject({
      times: [day(2) + 18_000, day(3) + 18_000],
    });
    expect(chart(ofDay, berlin, 'Europe/Berlin')).toMatchObject({ times: [day(2) - 3_600, day(3) - 3_600] });
    expect(chart(ofDay, hours, 'Europe/Berlin')).toMatchObject({ times: [day(2) + 32_400, day(2) + 36_000] });
  });

  it('has the ten largest of many lines, and says so', () => {
    const rows = [2, 3].flatMap((date) =>
      Array.from({ length: 37 }, (_, index) => [`2026-11-0${date}`, `event ${index}`, index]),
    );
    const drawn = chart(ofDay, rows);
    expect(drawn).toMatchObject({ omitted: 'The 10 largest of 37 series are drawn.' });
    expect(drawn.kind === 'times' && drawn.series.map(({ label }) => label)).toEqual(
      Array.from({ length: 10 }, (_, index) => `event ${index + 27}`),
    );
  });
});

describe('a result without times', () => {
  const types: Types = [
    ['event', 'String'],
    ['n', 'Int64'],
  ];

  it('has a bar for each name', () => {
    expect(
      chart(types, [
        ['a', 2],
        [null, 1],
        ['', 3],
      ]),
    ).toEqual({
      kind: 'bars',
      label: 'n by event',
      names: ['a', 'null', '(empty)'],
      series: [{ label: 'n', values: [2, 1, 3] }],
      omitted: null,
    });
  });

  it('has parts of bars for a second text, also if all rows have one time', () => {
    const parts: Types = [
      ['event', 'String'],
      ['plan', 'String'],
      ['n', 'Int64'],
    ];
    const rows = [
      ['a', 'pro', 2],
      ['a', 'free', 1],
      ['b', 'pro', 4],
    ];
    const stacked = {
      kind: 'bars',
      names: ['a', 'b'],
      series: [
        { label: 'pro', values: [2, 4] },
        { label: 'free', values: [1, null] },
      ],
    };
    expect(chart(parts, rows)).toMatchObject({ ...stacked, label: 'n by event and plan' });
    const timed: Types = [['day', 'Date'], ...parts];
    expect(
      chart(
        timed,
        rows.map((row) => ['2026-11-02', ...row]),
      ),
    ).toMatchObject(stacked);
  });

  it('has bars by its first number if it has no text', () => {
    const numbers: Types = [
      ['hour', 'Int64'],
      ['n', 'Int64'],
    ];
    expect(
      chart(numbers, [
        [0, 7],
        [1, 9],
      ]),
    ).toMatchObject({
      label: 'n by hour',
      names: ['0', '1'],
      series: [{ label: 'n', values: [7, 9] }],
    });
  });

  it('has the first 50 of many bars, and says so', () => {
    const rows = Array.from({ length: 80 }, (_, index) => [`name ${index}`, index]);
    const drawn = chart(types, rows);
    expect(drawn).toMatchObject({ omitted: 'The first 50 of 80 bars are drawn.' });
    expect(drawn.kind === 'bars' && drawn.names.length).toBe(50);
  });
});

describe('a result that cannot be drawn says why', () => {
  it.each<[string, Types, readonly (readonly unknown[])[]]>([
    [
      'the result has one row.',
      [
        ['n', 'Int64'],
        ['a', 'String'],
      ],
      [[1, 'x']],
    ],
    ['no column is a number: select count() or another one.', [['a', 'String']], [['x'], ['y']]],
    [
      'the result has one column: add one to draw it by, such as a time or a name.',
      [['n', 'Int64']],
      [[1], [2]],
    ],
    [
      'several rows have the same day, and no text tells them apart: group by it.',
      [
        ['day', 'Date'],
        ['n', 'Int64'],
      ],
      [
        ['2026-11-02', 1],
        ['2026-11-02', 2],
        ['2026-11-03', 2],
      ],
    ],
    [
      'all rows have the same day.',
      [
        ['day', 'Date'],
        ['n', 'Int64'],
      ],
      [
        ['2026-11-02', 1],
        ['2026-11-02', 2],
      ],
    ],
    [
      'several rows have the same day and event: group by both.',
      ofDay,
      [
        ['2026-11-02', 'a', 1],
        ['2026-11-02', 'a', 2],
        ['2026-11-03', 'a', 2],
      ],
    ],
    [
      'several rows have the same event: group by it.',
      [
        ['event', 'String'],
        ['n', 'Int64'],
      ],
      [
        ['a', 1],
        ['a', 2],
      ],
    ],
  ])('%s', (because, types, rows) => {
    expect(chart(types, rows)).toEqual({ kind: 'none', because });
  });
});
