import type { DraftInput } from '../draft_by_rules.ts';
import type { PropertyOwner, Vocabulary } from '../naming/vocabulary.ts';
import type { ChatMessage } from './call_model.ts';
import { unclearWord } from './reply.ts';

/** More names would cost more tokens than they help. */
const maxNames = 150;

const dialect = `You write one SELECT in a dialect of SQL that is close to ClickHouse's, for product analytics.
Tables and their fields:
- events: uuid, event, timestamp, distinct_id, person_id, person.properties.<key>, properties.<key>, $session_id
- persons: id, created_at, properties.<key>
- sessions: session_id, distinct_id, $start_timestamp, $end_timestamp, $session_duration (seconds), $pageview_count, $is_bounce, $entry_current_url, $entry_pathname, $entry_utm_source
Properties are strings: use toFloat(properties.<key>) for numbers. Quote names that are not plain identifiers in backticks.
Times: now() - INTERVAL 7 DAY, toStartOfHour/Day/Week/Month(timestamp). Functions: count(), countIf(condition), uniq(x), uniqIf(x, condition), avg, sum, min, max, median, quantile(0.9)(x), if, coalesce, windowFunnel(seconds)(timestamp, condition, ...).
Correlated subqueries are not supported. Answer with the query alone, without an explanation and without a semicolon. If the question is unclear, answer with the word ${unclearWord} alone.`;

/** The first messages to the model. They contain names of events and properties, but no values. */
export function firstMessages({
  prompt,
  current_query,
  vocabulary,
  today,
}: DraftInput): readonly ChatMessage[] {
  const known = [
    `Today is ${today}.`,
    `Events: ${listed(vocabulary.events)}`,
    `Properties of events: ${listed(keysOf(vocabulary, 'event'))}`,
    `Properties of persons: ${listed(keysOf(vocabulary, 'person'))}`,
  ];
  const request = current_query === null ? prompt : `${prompt}\n\nThe current query is:\n${current_query}`;
  return [
    { role: 'system', content: `${dialect}\n\n${known.join('\n')}` },
    { role: 'user', content: request },
  ];
}

const keysOf = ({ properties }: Vocabulary, owner: PropertyOwner): readonly string[] =>
  properties.filter(({ owners }) => owners.includes(owner)).map(({ key }) => key);

const listed = (names: readonly string[]): string => JSON.stringify(names.slice(0, maxNames));
