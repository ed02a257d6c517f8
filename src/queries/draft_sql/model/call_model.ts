import { z } from 'zod';

/** A message in a conversation with a language model. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** A language model. `url` is the base URL of an OpenAI-compatible API, such as `https://host/v1`. */
export interface ModelEndpoint {
  readonly url: string;
  readonly model: string;
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
}

const completion = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string() }) })).min(1),
});
/** No query of the dialect is longer. */
const maxResponseBytes = 1024 * 1024;

/** Calls the model and returns its reply. @throws Error if it does not reply in time, or without text */
export async function callModel(endpoint: ModelEndpoint, messages: readonly ChatMessage[]): Promise<string> {
  const { url, model, apiKey, timeoutMs } = endpoint;
  const response = await fetch(`${url.replace(/\/+$/, '')}/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({ model, messages, temperature: 0 }),
    // The API key must not be sent to another host.
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`The model's endpoint returned status ${response.status}.`);
  }
  const completed: unknown = JSON.parse(await readBounded(response));
  const [choice] = completion.parse(completed).choices;
  return choice?.message.content ?? '';
}

async function readBounded(response: Response): Promise<string> {
  const body: AsyncIterable<Uint8Array> | null = response.body;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > maxResponseBytes) throw new Error("The response of the model's endpoint is too long.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
