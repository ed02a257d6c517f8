/** A response that is an error, or a request without a response. `attr` names the field, its path joined by `__`. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  /** 0 without a response. */
  readonly status: number;
  readonly code: string;
  readonly attr: string | null;

  constructor(
    status: number,
    { code, detail, attr }: { readonly code: string; readonly detail: string; readonly attr: string | null },
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.attr = attr;
  }
}

/** Reads the body of an error response; a proxy's may have another form. */
export async function failureOf(response: Response): Promise<ApiFailure> {
  const body: unknown = await response.json().catch(() => null);
  const { code, detail, attr } = (body ?? {}) as Record<string, unknown>;
  return new ApiFailure(response.status, {
    code: typeof code === 'string' ? code : 'error',
    detail: typeof detail === 'string' ? detail : `The server responded with status ${response.status}.`,
    attr: typeof attr === 'string' ? attr : null,
  });
}

/** Any error as a failure, so that components show one kind. */
export const toFailure = (error: unknown): ApiFailure =>
  error instanceof ApiFailure
    ? error
    : new ApiFailure(0, {
        code: 'unreachable',
        detail: `The server did not respond: ${error instanceof Error ? error.message : String(error)}`,
        attr: null,
      });
