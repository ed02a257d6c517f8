import type { Settings } from '../../../config/settings.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import { QueryError } from '../../query_errors.ts';
import type { DraftInput } from '../draft_by_rules.ts';
import { unclear } from '../unclear.ts';
import { callModel, type ChatMessage } from './call_model.ts';
import { firstMessages } from './messages.ts';
import { readReply } from './reply.ts';

const maxAttempts = 3;

/**
 * A query that the language model of the operator drafts; what does not compile is told to it, so that it can do
 * better. Null where there is no model, none that answers, or none that finds a query that compiles.
 * @param check gives the query back when it compiles. @throws QueryError
 * @throws QueryError `unclear` when the model says that the prompt is
 */
export async function draftByModel(
  { settings, logger }: { readonly settings: Settings; readonly logger: Logger },
  input: DraftInput,
  check: (sql: string) => string,
): Promise<string | null> {
  const { EXPORTD_DRAFT_SQL_URL: url, EXPORTD_DRAFT_SQL_MODEL: model } = settings;
  if (url === undefined) return null;
  const endpoint = {
    url,
    model,
    apiKey: settings.EXPORTD_DRAFT_SQL_API_KEY,
    timeoutMs: settings.EXPORTD_DRAFT_SQL_TIMEOUT,
  };
  const messages: ChatMessage[] = [...firstMessages(input)];
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const text = await callModel(endpoint, messages).catch((error: unknown) => {
      logger.warn({ err: error }, 'the model that drafts queries could not be asked; rules are used instead');
      return null;
    });
    if (text === null) return null;
    const reply = readReply(text);
    if (reply.kind === 'unclear')
      throw unclear(
        'It is not clear what is asked for; say which events, persons or sessions, and what of them.',
      );
    try {
      return check(reply.sql);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      messages.push(
        { role: 'assistant', content: text },
        {
          role: 'user',
          content: `That query is refused: ${error.message}\nAnswer with a corrected query only.`,
        },
      );
    }
  }
  logger.warn('no query of the model that drafts them compiled; rules are used instead');
  return null;
}
