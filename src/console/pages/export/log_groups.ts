import type { LogLineResponse } from '../../../http/intervals/schema.ts';

/** The lines of a run, or a line of no run. */
export interface LogGroup {
  readonly key: string;
  /** Null for a line of no run. */
  readonly run_id: string | null;
  /** The interval of the run, if a line names it. */
  readonly interval: { readonly start: string; readonly end: string } | null;
  /** Newest first. */
  readonly lines: readonly LogLineResponse[];
  /** How it went: the newest of the most urgent lines, without what the group says already. */
  readonly headline: Pick<LogLineResponse, 'level' | 'message'>;
}

const urgency = ['ERROR', 'WARNING', 'INFO'];

const rankOf = ({ level }: LogLineResponse): number => {
  const rank = urgency.indexOf(level);
  return rank === -1 ? urgency.length : rank;
};

const intervalNames = /(?: of)? (\d{4}-\d\d-\d\dT[\d:.]+Z) to (\d{4}-\d\d-\d\dT[\d:.]+Z)/;

/** A message beside the interval of its run, which has a link to the manifest: `Exported 1,234 rows.` */
const withoutInterval = (message: string): string =>
  message.replace(intervalNames, '').replace(/ Manifest: \S+$/, '');

function groupOf(key: string, lines: readonly LogLineResponse[], first: LogLineResponse): LogGroup {
  const { level, message } = lines.reduce((best, line) => (rankOf(line) < rankOf(best) ? line : best), first);
  const run_id = first.instance_id;
  const named = run_id === null ? undefined : lines.map(({ message }) => intervalNames.exec(message));
  const [, start, end] = named?.find((match) => match !== null) ?? [];
  const interval = start === undefined || end === undefined ? null : { start, end };
  const headline = { level, message: interval === null ? message : withoutInterval(message) };
  return { key, run_id, interval, lines, headline };
}

/** Groups lines, newest first, by the run that wrote them. A run stands where its newest line does. */
export function groupByRun(lines: readonly LogLineResponse[]): LogGroup[] {
  const groups = Map.groupBy(lines, (line) => line.instance_id ?? line);
  return [...groups.values()].flatMap((members, index) => {
    const [first] = members;
    return first ? [groupOf(first.instance_id ?? `line-${index}`, members, first)] : [];
  });
}
