/** The S3 operation of a request with path-style addressing. */
export interface S3Operation {
  readonly operation: S3OperationName;
  /** Key of the object; empty for requests about the bucket. */
  readonly key: string;
  readonly partNumber: number | null;
  readonly uploadId: string | null;
  /** The version of the object that is meant. */
  readonly versionId: string | null;
}

export type S3OperationName =
  | 'CreateMultipartUpload'
  | 'UploadPart'
  | 'CompleteMultipartUpload'
  | 'AbortMultipartUpload'
  | 'ListObjectsV2'
  | 'ListParts'
  | 'ListMultipartUploads'
  | 'PutObject'
  | 'GetObject'
  | 'HeadObject'
  | 'DeleteObject'
  | 'Other';

/** Whether the operation changes the content of a bucket. */
export const isWrite = ({ operation }: Pick<S3Operation, 'operation'>): boolean =>
  ['CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload', 'PutObject'].includes(operation);

/** Parses the operation from method and URL. */
export function s3OperationOf(method: string, address: string): S3Operation {
  const { pathname, searchParams } = new URL(address, 'http://s3.test');
  const [, , ...key] = pathname.split('/').map(decodeURIComponent);
  const partNumber = searchParams.get('partNumber');
  return {
    operation: nameOf(method, searchParams, key.join('/') !== ''),
    key: key.join('/'),
    partNumber: partNumber === null ? null : Number(partNumber),
    uploadId: searchParams.get('uploadId'),
    versionId: searchParams.get('versionId'),
  };
}

function nameOf(method: string, query: URLSearchParams, ofObject: boolean): S3OperationName {
  if (!ofObject && query.get('list-type') === '2') return 'ListObjectsV2';
  if (!ofObject) return query.has('uploads') ? 'ListMultipartUploads' : 'Other';
  const ofUpload: Record<string, S3OperationName> = {
    PUT: 'UploadPart',
    POST: 'CompleteMultipartUpload',
    DELETE: 'AbortMultipartUpload',
    GET: 'ListParts',
  };
  const ofWhole: Record<string, S3OperationName> = {
    PUT: 'PutObject',
    GET: 'GetObject',
    HEAD: 'HeadObject',
    DELETE: 'DeleteObject',
  };
  if (query.has('uploadId')) return ofUpload[method] ?? 'Other';
  if (query.has('uploads')) return 'CreateMultipartUpload';
  return ofWhole[method] ?? 'Other';
}
