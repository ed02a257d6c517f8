/** The sentence about what is wrong with an export. */
import type { ConditionCause } from './condition_causes.ts';
import type { ConditionFacts } from './condition_facts.ts';
import { counted, utcTime } from './in_words.ts';

export const intervals = (count: number): string => counted(count, 'interval');

export const time = (at: string | null): string => (at === null ? 'an unknown time' : utcTime(at));

const withoutStop = (sentence: string): string => sentence.replace(/\.$/, '');

const waitingClause = ({ waiting }: ConditionFacts): string =>
  waiting === 0 ? 'The next run will wait.' : `${intervals(waiting)} wait${waiting === 1 ? 's' : ''}.`;

/** What the newest run ended with, as a clause that ends the sentence. */
const errorClause = (error: string | null): string => (error === null ? '.' : `: ${withoutStop(error)}.`);

/** Causes of which one outage concerns several exports. */
export type OutageCause =
  | 'no_worker'
  | 'temporal_unavailable'
  | 'source_unavailable'
  | 'operator_fault'
  | 'destination_unavailable';

/** What is out, since when and why: the same for all exports that it concerns. */
export function outageSentence(cause: OutageCause, facts: ConditionFacts): string {
  const { worker_seen_at, temporal_fault, source_fault, operator_fault, circuit } = facts;
  const sentence = (message: string | undefined, since: string | undefined): string =>
    `${withoutStop(message ?? '')}, since ${time(since ?? null)}.`;
  switch (cause) {
    case 'no_worker':
      return `No worker of exportd has reported since ${time(worker_seen_at)}.`;
    case 'temporal_unavailable':
      return sentence(temporal_fault?.message, temporal_fault?.opened_at);
    case 'source_unavailable': {
      const message = source_fault?.message ?? '';
      const named = message.startsWith('The source ') ? message : `The source cannot be read: ${message}`;
      return sentence(named, source_fault?.opened_at);
    }
    case 'operator_fault':
      return sentence(`${operator_fault?.type}: ${operator_fault?.message}`, operator_fault?.opened_at);
    case 'destination_unavailable':
      return `The bucket ${circuit?.bucket} does not respond since ${time(circuit?.opened_at ?? null)}: ${withoutStop(circuit?.error ?? '')}.`;
  }
}

/** How much waits for a slot, and for which. */
const slotsClause = ({ missing, taken_slots }: ConditionFacts): string => {
  const { slots = 0, workers = 0 } = taken_slots ?? {};
  const taken = slots === 1 ? 'the only one' : `all ${slots}`;
  return `${intervals(missing.intervals)} wait${missing.intervals === 1 ? 's' : ''} for a free slot, and ${taken} of ${counted(workers, 'worker')} ${slots === 1 ? 'is' : 'are'} in use`;
};

/** How much waits for its turn, and in how many workers. */
const turnsClause = ({ missing, taken_turns }: ConditionFacts): string => {
  const busy = taken_turns === 1 ? 'the only worker is' : `all ${taken_turns} workers are`;
  return `${intervals(missing.intervals)} ${missing.intervals === 1 ? 'waits for its' : 'wait for their'} turn, and ${busy} busy`;
};

export function summaryOf(cause: ConditionCause, facts: ConditionFacts): string {
  const { failed, retrying, held, differing, holes, unsettled, missing, pause } = facts;
  const one = (count: number, singular: string, plural: string): string => (count === 1 ? singular : plural);
  switch (cause) {
    case 'unreadable':
      return 'This version of exportd cannot read the schedule of the export.';
    case 'no_worker':
    case 'temporal_unavailable':
    case 'source_unavailable':
    case 'operator_fault':
    case 'destination_unavailable':
      return `${outageSentence(cause, facts)} ${waitingClause(facts)}`;
    case 'paused_by_failures':
      return `exportd paused the export at ${time(pause?.at ?? null)}, after ${pause?.failed_runs} failed runs in a row${errorClause(failed.latest_error)}`;
    case 'access_denied':
    case 'failed':
      return `${intervals(failed.intervals)} failed and ${one(failed.intervals, 'is', 'are')} not retried automatically${errorClause(failed.latest_error)}`;
    case 'held':
      return `${intervals(held.intervals)} ${one(held.intervals, 'is', 'are')} held, because the source no longer has all rows that were exported.`;
    case 'differs':
      return `The files of ${intervals(differing.intervals)} differ from the source.`;
    case 'table_changed':
      return `The table is not what exportd made it: ${withoutStop(facts.target_fault?.message ?? '')}.`;
    case 'not_started':
      return `${intervals(missing.intervals)} ${one(missing.intervals, 'is', 'are')} late and no run has started: Temporal does not respond, or no worker has taken the task. The oldest ended at ${time(facts.unstarted_since)}.`;
    case 'retrying':
      return `${intervals(retrying.intervals)} failed and ${one(retrying.intervals, 'is', 'are')} retried automatically${errorClause(retrying.latest_error)}`;
    case 'behind_capacity': {
      const [waiting, also] = facts.taken_slots
        ? [slotsClause(facts), ', or raise EXPORTD_EXPORT_SLOTS if the machines have CPU time left']
        : [turnsClause(facts), ''];
      return `Behind for lack of capacity: ${waiting}. The oldest ended at ${time(missing.oldest_end)}. Start one more worker${also}.`;
    }
    case 'behind':
      return `${intervals(missing.intervals)} ${one(missing.intervals, 'is', 'are')} not exported yet. The oldest ended at ${time(missing.oldest_end)}.`;
    case 'holes':
      return `${intervals(holes.intervals)} between the first and the last exported one ${one(holes.intervals, 'was', 'were')} never exported.`;
    case 'unsettled':
      return `${intervals(unsettled.intervals)} ${one(unsettled.intervals, 'was', 'were')} exported while transactions of the source were open, which may still add rows.`;
    case 'paused':
      return `Paused at ${time(pause?.at ?? null)}${pause?.by ? ` by ${pause.by}` : ''}.`;
    case 'ok':
      return facts.coverage?.sentence ?? '';
  }
}
