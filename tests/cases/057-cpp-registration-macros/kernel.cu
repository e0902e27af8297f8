__global__ void kernel(int) {}
