import { BoundedMap } from '../concurrency/bounded_map.ts';
import { escapeMarkdown, toMarkdown } from '../contract/markdown.ts';
import type { Pool } from '../journal/database.ts';
import { readCondition } from '../projections/export_conditions.ts';
import type { ScheduleStep } from './advance_schedule.ts';
import {
  attributesOf,
  type DescribedExport,
  factsOf,
  readDescribedExport,
  type ScheduleAttributes,
} from './described_export.ts';
import { utcTime } from '../domain/in_words.ts';

/** What a step says of itself. */
type DescribedStep = Pick<
  ScheduleStep,
  'status' | 'decided' | 'decided_commands' | 'waits_for' | 'next_run_at'
>;

/** What the Temporal UI shows of a schedule. */
export interface DescribedSchedule {
  /** In Markdown. */
  readonly details: string;
  /** Null if there is no such export. */
  readonly attributes: ScheduleAttributes | null;
}

/** How long an export that is well is taken to be as it was read, in milliseconds. The details say when that was. */
const maxAgeMs = 30 * 60_000;
/** The share of time in which a process reads conditions at most. When thousands of exports are due at once, most wait. */
const maxReadingShare = 0.05;
/** Bounds the memory of a process. */
const maxConditions = 10_000;

/** The condition of an export as a step read it. */
interface KnownCondition {
  readonly markdown: string;
  readonly isWell: boolean;
  readonly waits_for: string;
  readonly readAt: number;
}

/**
 * Says in the Temporal UI what a schedule is after a step: the condition of its export, its next run, what was
 * decided, and what the export is now, which a person may have changed since the workflow started. The condition takes
 * PostgreSQL as long as the run that the step creates, so that not every step reads it: of an export that is well twice an hour,
 * of others with each step, and of all not while others of the process have just been read, unless commands were decided.
 * @param now a clock in milliseconds
 */
export function createScheduleDescriber(pool: Pool, now: () => number = () => performance.now()) {
  const known = new BoundedMap<string, KnownCondition>(maxConditions);
  let nextReadAt = -Infinity;
  const conditionOf = async (
    batchExportId: string,
    { decided_commands, waits_for }: DescribedStep,
  ): Promise<string | undefined> => {
    const last = known.get(batchExportId);
    const readAt = now();
    const isFresh = last?.isWell === true && last.waits_for === waits_for && readAt - last.readAt < maxAgeMs;
    if (decided_commands === 0 && (isFresh || readAt < nextReadAt)) return last?.markdown;
    nextReadAt = Infinity;
    const condition = await readCondition(pool, batchExportId).finally(() => {
      nextReadAt = now() + (now() - readAt) / maxReadingShare;
    });
    const text = condition ? `${condition.severity}. ${escapeMarkdown(condition.summary)}` : 'no condition';
    const markdown = `${text} (${utcTime(new Date().toISOString())})`;
    known.set(batchExportId, { markdown, isWell: condition?.severity === 'ok', waits_for, readAt });
    return markdown;
  };
  const detailsOf = async (described: DescribedExport | undefined, step: DescribedStep): Promise<string> => {
    if (!described || step.status === 'absent') return 'The export does not exist.';
    const name = `**${escapeMarkdown(described.name)}**`;
    if (step.status === 'deleted') return `${name} is deleted.`;
    const condition = await conditionOf(described.id, step);
    return toMarkdown(
      [condition === undefined ? name : `${name}: ${condition}`],
      [
        ['Next run', step.next_run_at === null ? 'none' : utcTime(step.next_run_at)],
        ['Waits for', step.waits_for],
        [`Decided at ${utcTime(new Date().toISOString())}`, escapeMarkdown(step.decided)],
        ...factsOf(described),
      ],
    );
  };
  return async (batchExportId: string, step: DescribedStep): Promise<DescribedSchedule> => {
    const described = await readDescribedExport(pool, batchExportId);
    return {
      details: await detailsOf(described, step),
      attributes: described ? attributesOf(described) : null,
    };
  };
}
