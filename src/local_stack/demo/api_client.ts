/** A response with an unexpected status. */
class UnexpectedResponse extends Error {
  override readonly name = 'UnexpectedAnswer';
}

/** Client of the HTTP API. */
export interface ApiClient {
  /** @returns The body, or undefined for 404. @throws UnexpectedResponse for any other status from 400. */
  request<Body>(method: string, path: string, body?: unknown): Promise<Body | undefined>;
}

/** Creates a client whose paths are relative to the batch exports of a project. */
export function createApiClient(baseUrl: string, projectId: number, apiKey: string): ApiClient {
  const root = `${baseUrl}/api/environments/${String(projectId)}/batch_exports/`;
  return {
    request: async <Body>(method: string, path: string, body?: unknown) => {
      const response = await fetch(root + path, {
        method,
        headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      });
      if (response.status === 404) return undefined;
      const text = await response.text();
      if (!response.ok) throw new UnexpectedResponse(`${method} ${root}${path}: ${response.status} ${text}`);
      return text === '' ? undefined : (JSON.parse(text) as Body);
    },
  };
}
