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
  };
  const messages: ChatMessage[] = [...firstMessages(input)];
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const text = await callModel(endpoint, messages).catch((error: unknown) => {
      logger.warn({ err: error }, 'Could not call the model that drafts queries. Using rules instead.');
      return null;
    });
    if (text === null) return null;
    const reply = readReply(text);
    if (reply.kind === 'unclear')
      throw unclear(
        'The prompt is unclear. Say what to count or list, of which events, persons or sessions.',
      );
    try {
      return await check(reply.sql);
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
