import { escapeMarkdown, toMarkdown } from '../contract/markdown.ts';
import type { Pool } from '../journal/database.ts';
import { readCondition } from '../projections/export_conditions.ts';
import type { ScheduleStep } from './advance_schedule.ts';
import { factsOf, readDescribedExport } from './described_export.ts';
import { utcTime } from '../domain/in_words.ts';

/**
 * What the Temporal UI says of a schedule after a step, in Markdown: the condition of its export, its next run, what was
 * decided, and what the export is now, which a person may have changed since the workflow started.
 */
export async function describeSchedule(
  pool: Pool,
  batchExportId: string,
  {
    status,
    decided,
    waits_for,
    next_run_at,
  }: Pick<ScheduleStep, 'status' | 'decided' | 'waits_for' | 'next_run_at'>,
): Promise<string> {
  const described = await readDescribedExport(pool, batchExportId);
  if (!described || status === 'absent') return 'The export does not exist.';
  const name = `**${escapeMarkdown(described.name)}**`;
  if (status === 'deleted') return `${name} is deleted.`;
  const condition = await readCondition(pool, batchExportId);
  return toMarkdown(
    [
      `${name}: ${condition ? `${condition.severity}. ${escapeMarkdown(condition.summary)}` : 'no condition'}`,
    ],
    [
      ['Next run', next_run_at === null ? 'none' : utcTime(next_run_at)],
      ['Waits for', waits_for],
      [`Decided at ${utcTime(new Date().toISOString())}`, escapeMarkdown(decided)],
      ...factsOf(described),
    ],
  );
}
