/** An answer of the HTTP interface that is none of the expected ones. */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer';
}

/** The demo uses exportd as a person would: over HTTP, with a key. */
export interface ApiClient {
  /** @returns the answer's body; undefined for 404. @throws UnexpectedAnswer for any other status of 400 and above. */
  request<Answer>(method: string, path: string, body?: unknown): Promise<Answer | undefined>;
}

/** A client for the exports of one project. Paths are relative to its batch exports. */
export function createApiClient(baseUrl: string, projectId: number, apiKey: string): ApiClient {
  const root = `${baseUrl}/api/environments/${String(projectId)}/batch_exports/`;
  return {
    request: async <Answer>(method: string, path: string, body?: unknown) => {
      const answer = await fetch(root + path, {
        method,
        headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      });
      if (answer.status === 404) return undefined;
      const text = await answer.text();
      if (!answer.ok) throw new UnexpectedAnswer(`${method} ${root}${path}: ${answer.status} ${text}`);
      return text === '' ? undefined : (JSON.parse(text) as Answer);
    },
  };
}
