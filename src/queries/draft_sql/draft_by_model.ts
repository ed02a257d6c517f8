import * as z from 'zod';
import { bounds } from '../../config/bounds.ts';
import type { Settings } from '../../config/settings.ts';
import { post, type Proxies } from '../../network/proxies.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { QueryError } from '../query_errors.ts';
import { unclear } from './draft_by_rules.ts';
import type { PropertyOwner, Vocabulary } from '../vocabulary.ts';

/** The input of a draft. */
interface DraftInput {
  readonly prompt: string;
  /** The query that the prompt refers to. */
  readonly current_query: string | null;
  readonly vocabulary: Vocabulary;
  /** The current date in the project's zone, as `2026-11-21`. */
  readonly today: string;
}

/** A message in a conversation with a language model. */
interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** A language model, and the proxies to it. `url` is the base URL of an OpenAI-compatible API, such as `https://host/v1`. */
interface ModelEndpoint {
  readonly url: string;
  readonly model: string;
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
  readonly proxies: Proxies;
}

const maxAttempts = 3;
/** More names would cost more tokens than they help. */
const maxNames = 150;
/** The reply of the model to an unclear prompt. */
const unclearWord = 'UNCLEAR';

const instructions = `You write one SELECT in a dialect of SQL that is close to ClickHouse's, for product analytics.
Tables and their fields:
- events: uuid, event, timestamp, distinct_id, person_id, person.properties.<key>, properties.<key>, $session_id
- persons: id, created_at, properties.<key>
- sessions: session_id, distinct_id, $start_timestamp, $end_timestamp, $session_duration (seconds), $pageview_count, $is_bounce, $entry_current_url, $entry_pathname, $entry_utm_source
Properties are strings: use toFloat(properties.<key>) for numbers. Quote names that are not plain identifiers in backticks.
Times: now() - INTERVAL 7 DAY, toStartOfHour/Day/Week/Month(timestamp). Functions: count(), countIf(condition), uniq(x), uniqIf(x, condition), avg, sum, min, max, median, quantile(0.9)(x), if, coalesce, windowFunnel(seconds)(timestamp, condition, ...).
Correlated subqueries are not supported. Answer with the query alone, without an explanation and without a semicolon. If the question is unclear, answer with the word ${unclearWord} alone.`;

/**
 * Drafts a query with the operator's language model. A compile error is sent back for another attempt. Null without a
 * model, if it does not reply, or if none of its queries compiles.
 * @param check returns the query if it compiles
 * @throws QueryError `unclear` if the model says so
 */
export async function draftByModel(
  { settings, logger }: { readonly settings: Settings; readonly logger: Logger },
  input: DraftInput,
  check: (sql: string) => Promise<string>,
): Promise<string | null> {
  const { EXPORTD_DRAFT_SQL_URL: url, EXPORTD_DRAFT_SQL_MODEL: model } = settings;
  if (url === undefined) return null;
  const endpoint = {
    url,
    model,
    apiKey: settings.EXPORTD_DRAFT_SQL_API_KEY,
    timeoutMs: settings.EXPORTD_DRAFT_SQL_TIMEOUT,
    proxies: settings,
  };
  const messages: ChatMessage[] = [...firstMessages(input)];
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const text = await callModel(endpoint, messages).catch((error: unknown) => {
      logger.warn({ err: error }, 'Could not call the model that drafts queries. Using rules instead.');
      return null;
    });
    if (text === null) return null;
    const sql = queryOf(text);
    if (sql === null)
      throw unclear(
        'The prompt is unclear. Say what to count or list, of which events, persons or sessions.',
      );
    try {
      return await check(sql);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      messages.push(
        { role: 'assistant', content: text },
        {
          role: 'user',
          content: `That query is invalid: ${error.message}\nAnswer with a corrected query only.`,
        },
      );
    }
  }
  logger.warn('No query drafted by the model compiled. Using rules instead.');
  return null;
}

/** The first messages to the model. They contain names of events and properties, but no values. */
function firstMessages({ prompt, current_query, vocabulary, today }: DraftInput): readonly ChatMessage[] {
  const known = [
    `Today is ${today}.`,
    `Events: ${listed(vocabulary.events)}`,
    `Properties of events: ${listed(keysOf(vocabulary, 'event'))}`,
    `Properties of persons: ${listed(keysOf(vocabulary, 'person'))}`,
  ];
  const request = current_query === null ? prompt : `${prompt}\n\nThe current query is:\n${current_query}`;
  return [
    { role: 'system', content: `${instructions}\n\n${known.join('\n')}` },
    { role: 'user', content: request },
  ];
}

const keysOf = ({ properties }: Vocabulary, owner: PropertyOwner): readonly string[] =>
  properties.filter(({ owners }) => owners.includes(owner)).map(({ key }) => key);

const listed = (names: readonly string[]): string => JSON.stringify(names.slice(0, maxNames));

/** The query in a reply, without a code fence and a trailing `;`. Null if the model finds the prompt unclear. */
function queryOf(text: string): string | null {
  const [, fenced] = /```(?:\w+\n|\n)?([\s\S]*?)```/.exec(text) ?? [];
  const reply = (fenced ?? text).trim();
  if (reply === '' || new RegExp(`^${unclearWord}\\b`).test(reply)) return null;
  let query = reply;
  // A regular expression for the end takes quadratic time where much could be the end.
  while (query.endsWith(';')) query = query.slice(0, -1).trimEnd();
  return query;
}

const completion = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string() }) })).min(1),
});

/** Calls the model and returns its reply. @throws Error if it does not reply in time, or without text */
async function callModel(endpoint: ModelEndpoint, messages: readonly ChatMessage[]): Promise<string> {
  const { url, model, apiKey, timeoutMs, proxies } = endpoint;
  // Follows no redirects: the API key must not be sent to another host.
  const response = await post(`${url.replace(/\/+$/, '')}/chat/completions`, proxies, {
    headers: {
      'content-type': 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({ model, messages, temperature: 0 }),
    signal: AbortSignal.timeout(timeoutMs),
    maxInterimAnswers: bounds.interimAnswers.max,
  });
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`The model's endpoint returned status ${response.statusCode}.`);
  }
  const completed: unknown = JSON.parse(await readBounded(response));
  const [choice] = completion.parse(completed).choices;
  return choice?.message.content ?? '';
}

async function readBounded(response: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    // So short that it is parsed where it is. No model writes as much before the timeout.
    if (bytes > bounds.shortForeignText.max)
      throw new Error("The response of the model's endpoint is too long.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
