/** Formats a CRC-32 as the journal and manifests store it: eight hexadecimal digits. */
export const formatCrc32 = (checksum: number): string => checksum.toString(16).padStart(8, '0');
