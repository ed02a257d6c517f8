import { describe, expect, it } from '@jest/globals';
import { groupByRun } from '../../../src/console/pages/export/log_groups.ts';
import type { LogLineResponse } from '../../../src/http/intervals/schema.ts';
import { withCodesLast } from '../../../src/console/formatting/format.ts';

const line = (
  second: number,
  instance_id: string | null,
  level: LogLineResponse['level'],
  message: string,
): LogLineResponse => ({
  timestamp: `2026-11-01T11:00:${String(second).padStart(2, '0')}.000Z`,
  level,
  message,
  instance_id,
  log_source_id: 'export',
});

const named = '2026-11-01T10:00:00.000Z to 2026-11-01T11:00:00.000Z';

describe('the lines of a log', () => {
  it('are one group for each run, also of runs at the same time, the newest first', () => {
    const groups = groupByRun([
      line(9, null, 'INFO', 'Paused by the user.'),
      line(8, 'b', 'INFO', `Exporting ${named}`),
      line(7, 'a', 'INFO', `Exported 12 rows of ${named}. Manifest: events/_manifests/a.json.`),
      line(6, 'b', 'WARNING', 'Retrying.'),
      line(5, 'a', 'INFO', `Exporting ${named}`),
    ]);
    expect(groups.map(({ run_id, lines }) => [run_id, lines.length])).toEqual([
      [null, 1],
      ['b', 2],
      ['a', 2],
    ]);
    expect(groups.map(({ headline }) => headline.message)).toEqual([
      'Paused by the user.',
      'Retrying.',
      'Exported 12 rows.',
    ]);
    expect(groups[2]?.interval).toEqual({
      start: '2026-11-01T10:00:00.000Z',
      end: '2026-11-01T11:00:00.000Z',
    });
  });

  it.each([
    ['Exporting 2026-11-01T10:00:00.000Z to 2026-11-01T11:00:00.000Z to s3://b/a.', 'Exporting to s3://b/a.'],
    [`Run of ${named} ended Failed: It is gone.`, 'Run ended Failed: It is gone.'],
    [
      `Webhook w could not be notified: the interval ${named} was published.`,
      'Webhook w could not be notified: the interval was published.',
    ],
  ])('do not repeat the interval of their run: %s', (message, expected) => {
    expect(groupByRun([line(1, 'a', 'INFO', message)])[0]?.headline.message).toBe(expected);
  });

  it('name no interval of a run if none of them does, and of lines without a run', () => {
    const [first, second] = groupByRun([
      line(2, 'a', 'ERROR', 'Something failed.'),
      line(1, null, 'INFO', named),
    ]);
    expect([first?.interval, second?.interval]).toEqual([null, null]);
  });
});

describe('the code of an error', () => {
  it.each([
    ['InvalidRelation: The view is gone.', 'The view is gone. (InvalidRelation)'],
    [
      'Run of 10:00 ended Failed: SignatureDoesNotMatch: The server rejected it. Retry.',
      'Run of 10:00 ended Failed: The server rejected it. Retry. (SignatureDoesNotMatch)',
    ],
    ['The server says: Check your key: it is wrong.', 'The server says: Check your key: it is wrong.'],
    ['Error: of one word', 'Error: of one word'],
    ['', ''],
    ['InvalidRelation: ', 'InvalidRelation: '],
    ['A: BudgetExceeded: B. BudgetExceeded: C', 'A: B. C (BudgetExceeded)'],
  ])('stands behind the sentence: %s', (message, expected) => {
    expect(withCodesLast(message)).toBe(expected);
  });
});
